import type { Player } from './parity_player.ts'

/** Of a host that nobody here can ask about. */
const PROCESS = { host: 'elsewhere', seat: 'elsewhere/1', pid: 4242, start: 1 }
const HOST = { repository: '/repo/.git', host: PROCESS.host }
const ENTERS = {
  repository: HOST.repository,
  process: PROCESS,
  group: { ...PROCESS, mark: '0'.repeat(32) },
}
const ID = 'W-1.1'

/** A worktree from its making to its end, as runners and keepers tell of it. */
export async function worktrees(p: Player): Promise<void> {
  const added = { id: 'W-1', prompt: 'Work apart', project: 'trees', user: 'wes' }
  await p.ask('queue.add', 'ada', { ...added, touches: ['src/**'] })
  const claim = await p.ask('task.claim', 'bob', { id: 'W-1', queued: true, ttl_seconds: 2000 })
  const fence = claim.lease.fence as number
  const run = { task_id: 'W-1', fence }
  await p.ask('worktree.enter', 'bob', { ...ENTERS, run: { ...run, fence: 999_999 } })
  const once = { ...ENTERS, run, request_id: 'enter' }
  const entered = await p.ask('worktree.enter', 'bob', once)
  await p.ask('worktree.enter', 'bob', once)
  const other = { ...PROCESS, pid: 4243 }
  await p.ask('worktree.enter', 'ada', { ...ENTERS, process: other })
  const under = { ...HOST, fence: entered.fence as number }
  const worktree = {
    ...{ id: ID, task_id: 'W-1', run_id: ID, fence, project: 'trees', ...HOST },
    ...{ path: '/trees/ü 1', branch: 'leasehold/W-1-1', base: 'c0ffee' },
    ...{ state: 'making', salvage: null, changed: ['src/a.ts'], kept_because: null },
    ...{ begun_at: '2026-11-16T09:00:00Z', left_at: null },
  }
  const made = { ...under, worktree, request_id: 'made' }
  await p.ask('worktree.record', 'bob', made)
  await p.ask('worktree.record', 'bob', made)
  await p.ask('worktree.record', 'bob', { ...under, fence: 999_999, worktree })
  const another = { ...worktree, fence: fence + 1 }
  await p.ask('worktree.record', 'bob', { ...under, worktree: another })
  await p.ask('worktree.record', 'bob', { ...under, gone: ID })
  const ready = { ...worktree, state: 'ready' }
  await p.ask('worktree.record', 'bob', { ...under, worktree: ready, leaves: true })
  await p.ask('worktree.record', 'bob', { ...under, worktree: ready })
  await shown(p)
  await p.ask('run.finish', 'bob', { id: ID, fence, exit_code: 0 })
  await p.ask('worktree.enter', 'bob', { ...ENTERS, run })
  const again = await p.ask('worktree.enter', 'bob', ENTERS)
  const gone = { ...HOST, fence: again.fence as number, gone: ID, leaves: true }
  await p.ask('worktree.record', 'bob', gone)
  await p.ask('worktree.list', 'ada', { task_id: 'W-1' })
}

async function shown(p: Player): Promise<void> {
  await p.ask('task.create', 'ada', {
    ...{ id: 'W-2', title: 'The same', project: 'trees' },
    touches: ['src/*.ts', 'docs/'],
  })
  await p.ask('task.create', 'ada', { title: 'No', touches: ['../up'] })
  const claim = await p.ask('task.claim', 'ada', { id: 'W-2' })
  await p.ask('worktree.list', 'ada', { project: 'trees' })
  await p.ask('worktree.list', 'ada', { after: 'nonsense' })
  await p.ask('worktree.get', 'ada', { id: ID })
  await p.ask('worktree.get', 'ada', { id: 'W-9.1' })
  await p.ask('task.explain', 'ada', { id: 'W-2' })
  const { version } = claim.task
  const { fence } = claim.lease
  await p.ask('task.update', 'ada', { id: 'W-2', version, fence, touches: ['docs/**'] })
  await p.ask('task.explain', 'ada', { id: 'W-2' })
  await p.ask('task.status', 'ada', { id: 'W-2', status: 'cancelled', fence })
}
