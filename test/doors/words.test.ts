import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Say, worded } from '../../src/doors/words.ts'
import { overStdio } from './mcp_agent.ts'
import { finish, servingPlace, startDaemon } from './serving.ts'

const say: Say = ({ name }, input) => `${name} ${JSON.stringify(input)}`
const cannot: Say = () => undefined

test.each([
  ['Take another: leasehold task claim', 'Take another: task.claim {}'],
  [
    'To take it yourself: leasehold task claim 42 --queued',
    'To take it yourself: task.claim {"id":"42","queued":true}',
  ],
  [
    'Join the line: leasehold lock acquire path.x --wait 30s. Or not.',
    'Join the line: lock.acquire {"names":["path.x"],"wait_seconds":30}. Or not.',
  ],
  [
    "See who (leasehold lock status 'a b'), then ask",
    'See who (lock.status {"name":"a b"}), then ask',
  ],
  [
    "Free it: leasehold lock force-release 'it'\\''s'; leasehold lock list shows more",
    'Free it: lock.force_release {"name":"it\'s"}; lock.list {} shows more',
  ],
  [
    "Free it: leasehold lock force-release 'leasehold task claim'",
    'Free it: lock.force_release {"name":"leasehold task claim"}',
  ],
  ['"leasehold task claim" is its title', '"leasehold task claim" is its title'],
  ['Look for a stopped leasehold process', 'Look for a stopped leasehold process'],
  [
    "Nobody reads 'a --flag b' or \"x --y z\": it's --so",
    "Nobody reads 'a --flag b' or \"x --y z\": it's",
  ],
  ['Restore it: leasehold db restore --last-good', 'Restore it: leasehold db restore'],
])('%s', (text, other) => {
  expect(worded(text, say)).toBe(other)
})

test('what a door cannot call is left as a command for a person, without flags', () => {
  const text = 'An admin can change it: leasehold queue limit --user NAME --max 1'
  expect(worded(text, cannot)).toBe('An admin can change it: leasehold queue limit')
})

const ROOMS = ['core', 'operations', 'stores', 'reach']

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => path.endsWith('.ts'))
}

/** Texts in quotes, without those that declare a flag and those of git and pg_dump. */
function textsIn(path: string): string[] {
  const code = readFileSync(path, 'utf8').replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, '')
  const texts = [...code.matchAll(/'((?:[^'\\\n]|\\.)*)'|`([^`]*)`/g)]
  return texts.map(([, plain, made]) => plain ?? made!).filter((text) => / --[a-z]/.test(text))
}

test('no text that other doors may pass on keeps a flag', () => {
  const texts = ROOMS.flatMap((room) => sources(`src/${room}`)).flatMap(textsIn)
  expect(texts.length).toBeGreaterThan(5)
  const ours = texts.filter((text) => text.includes('leasehold ') && !text.includes('git '))
  for (const text of ours) expect(worded(text, say), text).not.toMatch(/ --[a-z]/)
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
