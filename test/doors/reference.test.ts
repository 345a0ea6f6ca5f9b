import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { openApi } from '../../src/doors/http/openapi.ts'
import { reference } from '../../src/operations/reference.ts'
import { operations } from '../../src/operations/registry.ts'
import { eventPage } from '../../lab/reference/event_page.ts'

it('docs/reference.md is what the registry says (else: npm run reference)', () => {
  const page = new URL('../../docs/reference.md', import.meta.url)
  expect(readFileSync(page, 'utf8')).toBe(reference())
})

it('docs/events.md is what src/core/event.ts says (else: npm run reference)', () => {
  const page = new URL('../../docs/events.md', import.meta.url)
  expect(readFileSync(page, 'utf8')).toBe(eventPage())
})

it('an event without a sentence does not get onto the page', () => {
  const source = "export interface EventData {\n  'task.made': { title: string }\n}\n"
  expect(() => eventPage(source)).toThrow('task.made has no sentence')
})

it('OpenAPI names every operation for others, with its input and its refusals', () => {
  const { paths } = openApi('test') as { paths: Record<string, Record<string, object>> }
  for (const { name, effect, internal } of operations) {
    const path = paths[`/v1/${name}`]!
    expect(path === undefined, name).toBe(internal ?? false)
    if (internal) continue
    expect(Object.keys(path), name).toEqual(effect === 'read' ? ['post', 'get'] : ['post'])
    expect(path['post']).toHaveProperty('requestBody')
    expect(path['post']).toHaveProperty(['responses', '401'])
  }
})
