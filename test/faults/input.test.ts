import { expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import type { Options } from '../support/processes.ts'

const LONG = 'x'.repeat(10_240)
const NEGATIVE = '--ttl=-5'

/** What is asked, the refusal, its exit code, and what the message must name. */
const BAD: [string, string[], string, number, RegExp, Options?][] = [
  ['a task that does not exist', ['task', 'show', '99'], 'not_found', 3, /99/],
  ['claiming one that does not exist', ['task', 'claim', '99'], 'not_found', 3, /99/],
  ['moving one that does not exist', ['task', 'status', '99', 'done'], 'not_found', 3, /99/],
  [
    'a status that does not exist',
    ['task', 'status', '1', 'maybe'],
    'invalid',
    2,
    /must be one of/,
  ],
  ['a negative TTL', ['lock', 'acquire', 'x', NEGATIVE], 'invalid', 2, /ttl/],
  ['a TTL of nothing', ['lock', 'acquire', 'x', '--ttl', '0'], 'invalid', 2, /ttl/],
  ['a TTL beyond a day', ['lock', 'acquire', 'x', '--ttl', '25h'], 'invalid', 2, /ttl/],
  ['a TTL that is no number', ['lock', 'acquire', 'x', '--ttl', 'NaN'], 'invalid', 2, /ttl/],
  ['an infinite TTL', ['lock', 'acquire', 'x', '--ttl', 'Infinity'], 'invalid', 2, /ttl/],
  ['an empty lock name', ['lock', 'acquire', ''], 'invalid', 2, /must not be empty/],
  ['a lock name of 10 kB', ['lock', 'acquire', LONG], 'invalid', 2, /at most \d+ characters/],
  ['a lock name with a line feed', ['lock', 'acquire', 'a\nb'], 'invalid', 2, /control/],
  ['a path lock taken by hand', ['lock', 'acquire', 'path:web:src'], 'invalid', 2, /path:/],
  ['an empty title', ['task', 'add', ''], 'invalid', 2, /title/],
  ['a title of 10 kB', ['task', 'add', LONG], 'too_large', 2, /title/],
  ['an id that climbs', ['task', 'add', 'x', '--id', '../../etc'], 'invalid', 2, /id/],
  ['an id with two dots', ['task', 'add', 'x', '--id', 'a..b'], 'invalid', 2, /id/],
  ['an id with a slash', ['task', 'add', 'x', '--id', 'a/b'], 'invalid', 2, /id/],
  ['an id of emoji', ['task', 'add', 'x', '--id', '🦊'], 'invalid', 2, /id/],
  ['an id of 10 kB', ['task', 'add', 'x', '--id', LONG], 'invalid', 2, /id/],
  ['showing an id that climbs', ['task', 'show', '../x'], 'invalid', 2, /id/],
  ['an empty agent', ['lock', 'list', '--agent', ''], 'invalid', 2, /agent/],
  ['an agent of 10 kB', ['lock', 'list', '--agent', LONG], 'invalid', 2, /agent/],
  ['a priority beyond 9', ['task', 'add', 'x', '--priority', '10'], 'invalid', 2, /priority/],
  ['a priority in words', ['task', 'add', 'x', '--priority', 'high'], 'invalid', 2, /priority/],
  ['metadata that is no JSON', ['task', 'add', 'x', '--metadata', '{'], 'invalid', 2, /metadata/],
  ['metadata that is a list', ['task', 'add', 'x', '--metadata', '[1]'], 'invalid', 2, /metadata/],
  ['a fence of nothing', ['lock', 'renew', 'x', '--fence', '0'], 'invalid', 2, /fence/],
  ['a fence beyond counting', ['lock', 'renew', 'x', '--fence', '1e300'], 'invalid', 2, /fence/],
  ['a version in words', ['task', 'edit', '1', '--version', 'new'], 'invalid', 2, /version/],
  ['a pid that nobody has', ['lock', 'acquire', 'x', '--pid', '4194304'], 'invalid', 2, /4194304/],
  ['a process group for a pid', ['lock', 'acquire', 'x', '--pid=-1'], 'invalid', 2, /-1/],
  ['a negative wait', ['lock', 'acquire', 'x', '--wait=-1'], 'invalid', 2, /wait/],
  ['an unknown backup', ['db', 'restore', 'nowhere.db'], 'not_found', 3, /nowhere\.db/],
  [
    'a body of a megabyte',
    ['task', 'add', 'x', '--body', '-'],
    'too_large',
    2,
    /body/,
    { input: 'x'.repeat(1024 * 1024) },
  ],
]

test('bad input is refused with what, why and next, and leaves nothing behind', async () => {
  const place = sandbox()
  await place.ok(['task', 'add', 'There', '--id', '1'])
  const before = await place.ok(['db', 'check'])
  for (const [what, args, code, exit, says, options] of BAD) {
    const refusal = await place.refused(args, code, exit, options)
    expect(refusal.message, what).toMatch(says)
    expect(refusal.message.length, what).toBeLessThan(500)
  }
  expect(await place.ok(['db', 'check'])).toEqual(before)
  expect((await place.ok(['task', 'list'])).items).toHaveLength(1)
})

test('a person is told in two lines, on standard error', async () => {
  const place = sandbox()
  const ended = await place.cli(['task', 'show', '99'])
  expect(ended).toMatchObject({ code: 3, out: '' })
  expect(ended.err).toBe(
    'error: There is no task 99\n  next: See what there is: leasehold task list\n',
  )
})

test('text is kept as it is or refused, never cut short', async () => {
  const place = sandbox()
  const nul = ['task', 'add', 'x', '--body', '-']
  const { message } = await place.refused(nul, 'invalid', 2, { input: 'kept \0 lost' })
  expect(message).toContain('NUL')
  const body = 'tab \t fox 🦊 lone \ud83e end\u2028'
  const args = ['task', 'add', 'Emoji 🦊 title', '--id', '1', '--body', '-']
  const metadata = ['--metadata', '{"fox":"🦊","deep":{"a":[1,null]}}']
  await place.ok([...args, ...metadata], { input: Buffer.from(body) })
  const task = await place.ok(['task', 'show', '1'])
  // A lone surrogate is no character: UTF-8 has a replacement for it, on every way in and out.
  expect(task.body).toBe(Buffer.from(body).toString())
  expect(task.title).toBe('Emoji 🦊 title')
  expect(task.metadata).toEqual({ fox: '🦊', deep: { a: [1, null] } })
  for (const text of ['{"nul":"\\u0000"}', '{"half\\ud800":1}', '{"deep":[["\\udfff"]]}']) {
    await place.refused(['task', 'add', 'x', '--metadata', text], 'invalid', 2)
  }
  await place.ok(['lock', 'acquire', 'schloß/🦊', '--agent', 'агент'])
  expect((await place.ok(['lock', 'list'])).items[0]).toMatchObject({ name: 'schloß/🦊' })
  expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
})

test('names that mean something to JavaScript or SQL are names like any other', async () => {
  const place = sandbox()
  for (const name of ['__proto__', 'constructor', 'toString', "x'; DROP TABLE task; --", '%s']) {
    expect((await place.ok(['lock', 'acquire', name])).name).toBe(name)
    await place.refused(['lock', 'acquire', name, '--agent', 'b'], 'held', 5)
  }
  await place.ok(['task', 'add', '__proto__', '--id', 'constructor', '--label', '__proto__'])
  const { items } = await place.ok(['task', 'list', '--label', '__proto__'])
  expect(items).toHaveLength(1)
  const metadata = '{"constructor":2,"deep":{"__proto__":{"polluted":1}}}'
  const task = await place.ok(['task', 'add', 'x', '--id', 'p', '--metadata', metadata])
  expect(JSON.stringify(task.metadata)).toBe(metadata)
  const dropped = '{"__proto__":{"polluted":1}}'
  await place.refused(['task', 'add', 'x', '--metadata', dropped], 'invalid', 2)
})
