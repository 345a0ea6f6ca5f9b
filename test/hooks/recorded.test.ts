import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { page, pageText, readResults } from '../../lab/clients/page.ts'
import { CLIENTS } from '../../lab/clients/programs.ts'
import { outcomeOf, PLACES, type Recording, recordingsOf } from '../../lab/clients/recordings.ts'
import { HALF_DONE, HELD, SCENE } from '../../lab/clients/scene.ts'
import { AgentProcess, repository } from './agents.ts'

describe('what a real client sent is answered as it was then', () => {
  // Fails where there is none of the version that npm run clients drives.
  test.for(CLIENTS)('$name $version', async (driven) => {
    const folder = recordingsOf(driven)
    const { place, repo, git } = repository()
    for (const [path, text] of Object.entries(SCENE)) writeFileSync(join(repo, path), text)
    git('add', '.')
    git('commit', '-qm', 'Scene')
    for (const [path, text] of Object.entries(HALF_DONE)) writeFileSync(join(repo, path), text)
    const holder = new AgentProcess(place, repo)
    await holder.leasehold(`reserve add ${HELD.join(' ')} --agent holder`)
    const client = new AgentProcess(place, repo)
    const found: Record<string, string> = {}
    const expected: Record<string, string> = {}
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), 'utf8')
      const here = text.replaceAll(PLACES.repo, repo).replaceAll(PLACES.home, place.home)
      const { client: kind, event, input, outcome } = JSON.parse(here) as Recording
      const { code, out } = await client.hook(kind, event, input)
      found[name] = outcomeOf(String(code), out)
      expected[name] = outcome
    }
    expect(found).toEqual(expected)
    expect(Object.values(found)).toContain('refused')
  })
})

test('docs/clients.md shows what npm run clients has seen', () => {
  expect(page(pageText(), readResults())).toBe(pageText())
})
