import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nextText } from '../../src/core/next.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { asCommand } from '../../src/operations/command.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import { overStdio } from './mcp_agent.ts'
import { finish, servingPlace, startDaemon } from './serving.ts'

test.each([
  ['task.claim', {}, 'task claim'],
  ['task.claim', { id: '42', queued: true }, 'task claim 42 --queued'],
  ['lock.acquire', { names: ['a b', 'c'], wait_seconds: 30 }, "lock acquire 'a b' c --wait 30s"],
  ['lock.force_release', { name: "it's" }, "lock force-release 'it'\\''s'"],
  [
    'memory.put',
    { key: 'K', scope: 'project:web', content: 'T' },
    'memory put K T --scope project:web',
  ],
  ['queue.limit', { project: '-x; rm', max: 2 }, "queue limit --project '-x; rm' --max 2"],
  ['token.create', { role: 'agent', for_agent: 'b' }, 'token create --role agent --agent b'],
  ['from.tomorrow', { id: '1' }, 'from tomorrow'],
])('%s is said as a command', (operation, input, command) => {
  expect(asCommand({ operation, input })).toBe(`leasehold ${command}`)
})

test('what stands beside each other is read as sentences', () => {
  const { actions, next } = new Refusal('held', 'no', {
    next: ['Wait.', { says: 'Or take another', operation: 'task.claim' }, '', 'Or go home'],
  })
  expect(next).toBe('Wait. Or take another: task.claim. Or go home')
  expect(nextText(actions.slice(1, 2), asCommand)).toBe('Or take another: leasehold task claim')
})

test('a refusal is read back as it was, from this server and from an older one', () => {
  const told = new Refusal('held', 'no', { next: { says: 'See', operation: 'lock.list' } })
  const read = Refusal.from(
    told.inWords(({ operation }) => `POST ${operation}`),
    409,
  )
  expect(read.toJSON()).toEqual(told.toJSON())
  const plain = { code: 'held', message: 'no', next: 'Wait.', details: {} }
  expect(Refusal.from({ error: plain }, 409).toJSON()).toEqual({ error: plain })
})

const NAMED = /operation: '([a-z_]+\.[a-z_]+)',?(?:\s*input: \{([^}]*)\})?/g

const MISSING = /missing\(`[^`]*`, '([a-z_.]+)'/g

test('whatever rules say to do next is an operation with such fields', () => {
  const rooms = ['core', 'operations', 'stores', 'reach', 'hooks'].map((room) => join('src', room))
  const sources = rooms.flatMap((room) => {
    const names = readdirSync(room, { recursive: true }).map(String)
    return names.filter((name) => name.endsWith('.ts')).map((name) => join(room, name))
  })
  const texts = sources.map((path) => readFileSync(path, 'utf8')).join('\n')
  const named = [...texts.matchAll(NAMED), ...texts.matchAll(MISSING)]
  expect(named.length).toBeGreaterThan(30)
  for (const [text, name, input = ''] of named) {
    const operation = operationNamed.get(name!)
    expect(operation, text).toBeDefined()
    const fields = [...input.matchAll(/(\w+)(?::[^,]*)?,?/g)].map(([, field]) => field)
    expect(Object.keys(operation!.input), text).toEqual(expect.arrayContaining(fields))
  }
})

test('HTTP and MCP name calls of theirs, the command line names commands', async () => {
  const place = servingPlace()
  const daemon = await startDaemon(place)
  await daemon.ok('lock.acquire', { name: 'x', agent: 'bob' })
  const token = await daemon.agentToken('amy')
  const { json: held } = await daemon.post('lock.acquire', { name: 'x' }, { token })
  expect(held.error.next).toContain('Only a person can free it')
  const { json: named } = await daemon.post('lock.acquire', { name: 'x', agent: 'zoe' })
  expect(named.error.next).toBe(held.error.next)
  const { json: gone } = await daemon.post('task.get', { id: 'none' }, { token })
  expect(gone.error.next).toBe('See what there is: POST /v1/task.list')
  const agent = await overStdio(place)
  expect(await agent.text('get_task', { task_id: 'none' })).toContain(
    'Next: See what there is: list_tasks',
  )
  const cli = await place.refused(['task', 'show', 'none'], 'not_found', 3)
  expect(cli.next).toBe('See what there is: leasehold task list')
  await finish(place)
})
