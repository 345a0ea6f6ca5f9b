import { operations } from '../../src/operations/registry.ts'
import type { Player } from './parity_player.ts'

const OF_MEMORY = operations.filter(({ name }) => /^(?:memory|conflict)\./.test(name))

/** Refusals that no script can bring about from outside, and why. */
export const MEMORY_UNREACHED = Object.fromEntries(
  OF_MEMORY.map(({ name }) => {
    return [name, { unavailable: 'only on a file store: e2e/memory shows it' }]
  }),
)

const WEB = { scope: 'project:web' }

/** Shared memory: notes, conflicts, and what is refused. */
export async function memory(p: Player): Promise<void> {
  await notes(p)
  await disagreements(p)
  await leases(p)
  await endings(p)
}

async function notes(p: Player): Promise<void> {
  const full = {
    ...WEB,
    key: 'ways – größer 錠',
    content: 'two\nlines "and" \\ all',
    tags: ['a', 'b'],
  }
  await p.ask('memory.put', 'ada', { ...full, confidence: 0.75, ttl_seconds: 86_400 })
  await p.ask('memory.put', 'bob', full)
  await p.ask('memory.get', 'bob', { ...WEB, key: full.key })
  const once = { key: 'once', content: 'one', request_id: 'm1' }
  await p.ask('memory.put', 'ada', once)
  await p.ask('memory.put', 'ada', once)
  await p.ask('memory.put', 'ada', { ...once, content: 'other' })
  await p.ask('memory.put', 'ada', { key: 'once', content: 'two', based_on: 1 })
  await p.ask('memory.put', 'ada', { key: 'once', content: 'three', based_on: 9 })
  await p.ask('memory.get', 'bob', { key: 'once', version: 1 })
  await p.ask('memory.get', 'bob', { key: 'once', version: 7 })
  await p.ask('memory.list', 'bob')
  await p.ask('memory.list', 'bob', { ...WEB, tag: 'a' })
  const page = await p.ask('memory.history', 'bob', { key: 'once', limit: 1 })
  await p.ask('memory.history', 'bob', { key: 'once', limit: 1, after: page.next })
  await p.ask('memory.history', 'bob', { key: 'none' })
  for (const scope of ['nowhere', 'task:\u200b']) {
    await p.ask('memory.put', 'ada', { key: 'k', content: 'x', scope })
  }
  await p.ask('memory.put', 'ada', { key: 'a\u202eb', content: 'x' })
  await p.ask('memory.put', 'ada', { key: 'k', content: 'x'.repeat(1024 * 1024 + 1) })
  await p.ask('memory.put', 'ada', { key: 'k', content: 'x', fence: 7 })
}

async function disagreements(p: Player): Promise<void> {
  const once = { key: 'port', content: '5433', request_id: 'm2' }
  await p.ask('memory.put', 'ada', { key: 'port', content: '5432' })
  const { conflict } = await p.ask('memory.put', 'bob', once)
  await p.ask('memory.put', 'bob', once)
  await p.ask('memory.get', 'cy', { key: 'port' })
  await p.ask('conflict.list', 'cy')
  await p.ask('conflict.list', 'cy', { id: conflict.id })
  await p.ask('conflict.list', 'cy', { id: 'none' })
  await p.ask('memory.delete', 'cy', { key: 'port' })
  const { id } = conflict
  for (const how of [{ choose: 'ours', content: 'x' }, { choose: '7' }]) {
    await p.ask('conflict.resolve', 'cy', { id, ...how })
  }
  await p.ask('conflict.resolve', 'cy', { id, content: 'x'.repeat(1024 * 1024 + 1) })
  const last = { id, content: '5432 here,\n5433 there', request_id: 'm3' }
  await p.ask('conflict.resolve', 'cy', last)
  await p.ask('conflict.resolve', 'cy', last)
  await p.ask('conflict.resolve', 'cy', { id, choose: 'theirs' })
  await p.ask('conflict.resolve', 'cy', { id: 'none', choose: 'theirs' })
  await p.ask('conflict.list', 'cy', { status: 'resolved' })
}

/** Written for a task, under its lease. */
async function leases(p: Player): Promise<void> {
  await p.ask('task.create', 'ada', { id: 'M-1', title: 'Learn' })
  const first = await p.ask('task.claim', 'ada', { id: 'M-1', ttl_seconds: 600 })
  const note = { scope: 'task:M-1', key: 'plan', content: 'first', task_id: 'M-1' }
  const { fence } = first.lease
  await p.ask('memory.put', 'ada', { ...note, fence })
  await p.ask('memory.put', 'bob', { ...note, content: 'mine' })
  await p.ask('memory.delete', 'bob', { scope: 'task:M-1', key: 'plan', task_id: 'M-1' })
  await p.ask('task.status', 'ada', { id: 'M-1', status: 'todo', fence })
  await p.ask('memory.put', 'ada', { ...note, content: 'late', fence })
  const gone = { scope: 'task:M-1', key: 'plan', task_id: 'M-1', fence }
  await p.ask('memory.delete', 'ada', gone)
  await p.ask('task.claim', 'bob', { id: 'M-1', ttl_seconds: 600 })
  await p.ask('memory.put', 'ada', { ...note, content: 'late', fence })
  await p.ask('memory.delete', 'ada', gone)
  await p.ask('memory.delete', 'ada', { scope: 'task:M-1', key: 'plan', fence: 7 })
}

async function endings(p: Player): Promise<void> {
  await p.ask('memory.delete', 'ada', { key: 'once', based_on: 1 })
  await p.ask('memory.get', 'ada', { key: 'once' })
  await p.ask('memory.delete', 'ada', { key: 'port', request_id: 'm4' })
  await p.ask('memory.delete', 'ada', { key: 'port', request_id: 'm4' })
  await p.ask('memory.delete', 'ada', { key: 'port' })
  await p.ask('memory.prune', 'cy', {})
  await p.ask('memory.prune', 'cy', { dry_run: true, below_confidence: 0.8, ...WEB })
  await p.ask('memory.prune', 'cy', { dry_run: false })
  await p.ask('memory.put', 'cy', { key: 'port', content: 'anew', based_on: 2 })
}
