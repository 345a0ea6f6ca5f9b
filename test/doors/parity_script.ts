import { seat } from '../../src/machine/process.ts'
import { operations } from '../../src/operations/registry.ts'
import { sha256 } from '../../src/machine/digest.ts'
import type { Opened } from './parity_doors.ts'
import { past } from './parity_past.ts'
import { landing } from './parity_landing.ts'
import { paths } from './parity_paths.ts'
import { memory, MEMORY_UNREACHED } from './parity_memory.ts'
import { type Choice, type Name, Player, type Step } from './parity_player.ts'
import { queue } from './parity_queue.ts'
import { SEARCH_UNREACHED, searching } from './parity_search.ts'
import { worktrees } from './parity_worktrees.ts'

/** Refusals that no script can bring about from outside, and why. */
export const UNREACHED: Partial<Record<Name, Record<string, string>>> = {
  'lock.force_release': { forbidden: 'every door asks as an admin, or refuses the role first' },
  'lock.release': { illegal_move: 'only while a command of `leasehold run` runs under the lease' },
  'lock.hand_off': { illegal_move: 'only while a command of `leasehold run` runs under the lease' },
  'task.claim': { lease_expired: 'shown below by a replayed claim' },
  ...MEMORY_UNREACHED,
  ...SEARCH_UNREACHED,
  'land.add': {
    not_found: 'only for a token with a scope: scopes.test.ts shows it',
    lease_expired: 'what is nobody’s is not in progress any more',
  },
  ...Object.fromEntries(
    (['queue.add', 'queue.pause', 'queue.resume', 'queue.limit', 'stats.get'] as const).map(
      (name) => {
        return [name, { unavailable: 'only on a file store: e2e/queue shows it' }]
      },
    ),
  ),
}

export async function play(opened: Opened, choice?: Choice): Promise<Step[]> {
  const player = new Player(opened, choice)
  const own = [
    locks,
    waits,
    tasks,
    moves,
    queue,
    landing,
    worktrees,
    paths,
    memory,
    searching,
    lists,
    tokens,
    past,
  ]
  const parts = [...own, badInput]
  for (const part of parts) await part(player)
  return player.steps
}

async function locks(p: Player): Promise<void> {
  const x = await p.ask('lock.acquire', 'ada', { names: ['x'], ttl_seconds: 600 })
  await p.ask('alert.list', 'ada')
  await p.ask('now.get', 'ada')
  await p.ask('stuck.get', 'ada')
  await p.ask('span.list', 'ada', { lock: 'x' })
  await p.ask('lock.acquire', 'bob', { names: ['x'] })
  await p.ask('lock.acquire', 'bob', { names: ['y', 'x'] })
  await p.ask('lock.acquire', 'bob', { names: ['y', 'z'], ttl_seconds: 1200.5 })
  await p.ask('lock.status', 'bob', { name: 'x' })
  await p.ask('lock.status', 'bob', { name: 'never held' })
  await p.ask('lock.renew', 'ada', { name: 'x', fence: x.fence, ttl_seconds: 700 })
  await p.ask('lock.renew', 'bob', { name: 'x' })
  const again = await p.ask('lock.acquire', 'ada', { names: ['x'], ttl_seconds: 600 })
  await p.ask('lock.renew', 'ada', { name: 'x', fence: x.fence })
  await p.ask('lock.release', 'ada', { name: 'x', fence: x.fence })
  await p.ask('lock.hand_off', 'ada', { name: 'x', fence: x.fence, to: 'bob' })
  await p.ask('lock.name_group', 'ada', { name: 'x', fence: x.fence, group: GROUP })
  await p.ask('lock.hand_off', 'cy', { name: 'x', to: 'cy' })
  const handed = await p.ask('lock.hand_off', 'ada', { name: 'x', fence: again.fence, to: 'bob' })
  await p.ask('lock.release', 'ada', { name: 'x' })
  await p.ask('lock.release', 'bob', { name: 'x', fence: handed.fence })
  for (const verb of ['renew', 'release', 'name_group'] as const) {
    const more = verb === 'name_group' ? { group: GROUP } : {}
    await p.ask(`lock.${verb}`, 'bob', { name: 'x', fence: handed.fence, ...more })
  }
  await p.ask('lock.hand_off', 'bob', { name: 'x', fence: handed.fence, to: 'ada' })
  for (const verb of ['acquire', 'renew', 'release', 'status', 'hand_off'] as const) {
    const more = verb === 'hand_off' ? { to: 'ada' } : {}
    await p.ask(`lock.${verb}`, 'bob', { task_id: 'none such', ...more })
    await p.ask(`lock.${verb}`, 'bob', { task_id: 'none-such', ...more })
  }
  const g = await p.ask('lock.acquire', 'cy', { names: ['grouped'] })
  await p.ask('lock.name_group', 'ada', { name: 'grouped', fence: g.fence, group: GROUP })
  const gone = { ...GROUP, seat, pid: 2 ** 22 - 7 }
  await p.ask('lock.name_group', 'cy', { name: 'grouped', fence: g.fence, group: gone })
  await p.ask('lock.name_group', 'cy', { name: 'grouped', fence: g.fence, group: GROUP })
  const once = { names: ['once'], request_id: 'r1' }
  const first = await p.ask('lock.acquire', 'ada', once)
  await p.ask('lock.acquire', 'ada', once)
  await p.ask('lock.acquire', 'ada', { ...once, names: ['twice'] })
  await p.ask('lock.force_release', 'cy', { name: 'once', reason: 'stuck' })
  await p.ask('lock.force_release', 'cy', { name: 'never held' })
  await p.ask('lock.acquire', 'ada', once)
  await p.ask('lock.renew', 'ada', { name: 'once', fence: first.fence })
  await p.ask('lock.acquire', 'ada', { names: ['path:web:src/**'] })
  await p.ask('agent.heartbeat', 'bob')
}

/** Of a host that nobody here can ask about. */
const GROUP = {
  host: 'elsewhere',
  seat: 'elsewhere/1',
  pid: 4242,
  start: 1,
  mark: '0'.repeat(32),
}

async function waits(p: Player): Promise<void> {
  await p.ask('lock.acquire', 'ada', { names: ['a'] })
  await p.ask('lock.acquire', 'bob', { names: ['b'] })
  await p.ask('lock.acquire', 'bob', { names: ['a'], wait_seconds: 0.2 })
  await p.ask('lock.explain', 'bob', { name: 'a' })
  const waiting = await p.waits('a', 'lock.acquire', 'bob', { names: ['a'], wait_seconds: 30 })
  await p.ask('lock.explain', 'bob', { name: 'a' })
  await p.ask('lock.acquire', 'ada', { names: ['b'], wait_seconds: 30 })
  await p.ask('lock.release', 'ada', { name: 'a' })
  await waiting.got
  await p.ask('lock.status', 'cy', { name: 'a' })
}

async function tasks(p: Player): Promise<void> {
  const full = {
    id: 'T-1',
    title: 'Mend – größer 錠',
    body: 'two\nlines',
    project: 'web',
    user: 'alice',
    priority: 8,
    group: 'g',
    labels: ['bug', 'ui'],
    metadata: { ra_mode: 'x', deep: { list: [1, 'two', null] } },
  }
  await p.ask('task.create', 'ada', full)
  await p.ask('task.create', 'bob', full)
  await p.ask('task.create', 'ada', { title: 'numbered' })
  await p.ask('task.create', 'ada', { title: 'later', id: 'T-2', depends_on: ['T-1'] })
  await p.ask('task.create', 'ada', { title: 'no', depends_on: ['none'] })
  await p.ask('task.create', 'ada', { title: 'x'.repeat(501) })
  await p.ask('task.create', 'ada', { title: 'bobs', id: 'T-3', assigned_to: 'bob' })
  await p.ask('task.get', 'bob', { id: 'T-1' })
  await p.ask('task.get', 'bob', { id: 'none' })
  await p.ask('task.explain', 'ada', { id: 'T-2' })
  await p.ask('task.explain', 'ada', { id: 'none' })
  await p.ask('task.claim', 'ada', { id: 'none' })
  await p.ask('task.claim', 'ada', { id: 'T-2' })
  await p.ask('task.claim', 'ada', { id: 'T-3' })
  const claim = await p.ask('task.claim', 'ada', { id: 'T-1', ttl_seconds: 60 })
  await p.ask('task.claim', 'bob', { id: 'T-1' })
  const { fence } = claim.lease
  const version = claim.task.version as number
  await p.ask('task.update', 'ada', { id: 'T-1', version, fence, title: 'Mended', labels: ['ui'] })
  await p.ask('task.update', 'ada', { id: 'T-1', version, fence, title: 'Stale' })
  await p.ask('task.update', 'bob', { id: 'T-1', version: version + 1, title: 'Mine' })
  await p.ask('task.update', 'ada', { id: 'none', version: 1, title: 'No' })
  await p.ask('task.update', 'ada', {
    id: 'T-1',
    version: version + 1,
    fence: 999_999,
    title: 'No',
  })
  await p.ask('task.status', 'bob', { id: 'T-1', status: 'done' })
  await p.ask('task.status', 'ada', { id: 'T-1', status: 'done', fence: 999_999 })
  await p.ask('task.status', 'ada', { id: 'T-1', status: 'Completed', fence })
  await p.ask('task.update', 'ada', { id: 'T-1', version: version + 2, title: 'Read-only' })
  await p.ask('task.update', 'ada', { id: 'T-1', version: version + 2, title: 'Late', fence })
}

async function moves(p: Player): Promise<void> {
  await p.ask('task.status', 'ada', { id: 'T-1', status: 'todo' })
  await p.ask('task.status', 'ada', { id: 'none', status: 'done' })
  await p.ask('task.status', 'ada', { id: 'T-2', status: 'done' })
  await p.ask('task.status', 'ada', { id: 'T-3', status: 'in_progress' })
  await p.ask('task.status', 'ada', { id: 'T-2', status: 'nonsense' })
  const moved = await p.ask('task.status', 'ada', { id: 'T-2', status: 'IN PROGRESS' })
  await p.ask('task.status', 'bob', { id: 'T-2', status: 'cancelled' })
  await p.ask('task.status', 'ada', { id: 'T-2', status: 'review', fence: moved.lease.fence })
  await p.ask('task.status', 'bob', { id: 'T-2', status: 'done' })
  const next = await p.ask('task.claim', 'cy', { request_id: 'next' })
  await p.ask('task.claim', 'cy', { request_id: 'next' })
  await p.ask('lock.force_release', 'ada', { name: next.lease.name })
  await p.ask('task.claim', 'cy', { request_id: 'next' })
  await p.ask('task.claim', 'cy', { project: 'nowhere' })
  await p.ask('task.claim', 'cy', { project: 'nowhere', max: 3 })
  await p.ask('task.claim', 'cy', { id: 'T-3', max: 3 })
  await p.ask('task.claim', 'cy', { max: 101 })
  for (const id of ['M-a', 'M-b']) {
    await p.ask('task.create', 'ada', { title: 'of many', id, project: 'many' })
  }
  const many = await p.ask('task.claim', 'cy', { project: 'many', max: 3, request_id: 'many' })
  await p.ask('task.claim', 'cy', { project: 'many', max: 3, request_id: 'many' })
  for (const { task, lease } of many.claims) {
    await p.ask('task.status', 'cy', { id: task.id, status: 'cancelled', fence: lease.fence })
  }
}

async function lists(p: Player): Promise<void> {
  await p.ask('task.list', 'ada')
  const page = await p.ask('task.list', 'ada', { limit: 2 })
  await p.ask('task.list', 'ada', { limit: 2, after: page.next })
  await p.ask('task.list', 'ada', { status: 'done' })
  await p.ask('task.list', 'bob', { ready: true })
  await p.ask('task.list', 'ada', { label: 'ui', project: 'web' })
  for (const name of ['task.list', 'lock.list', 'agent.list', 'token.list'] as const) {
    await p.ask(name, 'ada', { after: 'nonsense' })
    await p.ask(name, 'ada', { limit: 0 })
  }
  await p.ask('lock.list', 'ada')
  await p.ask('agent.list', 'ada')
  // Of a time when nothing was: what is counted now differs with who else is at work.
  await p.ask('stats.get', 'ada', { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' })
  await p.ask('stats.get', 'ada', { from: '2020-01-02T00:00:00Z', to: '2020-01-01T00:00:00Z' })
}

async function tokens(p: Player): Promise<void> {
  const secret_hash = sha256('a secret of the script')
  await p.ask('token.create', 'ada', { secret_hash, role: 'agent' })
  const ask = { secret_hash, role: 'agent', for_agent: 'dee', ttl_seconds: 3600 }
  const { id } = await p.ask('token.create', 'ada', ask)
  await p.ask('token.revoke', 'ada', { id })
  await p.ask('token.create', 'ada', ask)
  await p.ask('token.revoke', 'ada', { id: 'none' })
  await p.ask('token.list', 'ada')
}

/** Of every operation: nothing at all, a field it does not have, and each field with nonsense. */
async function badInput(p: Player): Promise<void> {
  for (const { name, input } of operations) {
    if (Object.values(input).some(({ schema }) => !schema().safeParse(undefined).success)) {
      await p.ask(name as Name, 'ada', {})
    }
    await p.ask(name as Name, 'ada', { nonsense: 1 })
    for (const field of Object.keys(input)) await p.ask(name as Name, 'ada', { [field]: [[]] })
  }
}
