import type { Player } from './parity_player.ts'

/** Asking for landings, and what becomes of "done" where it has to be proved. */
export async function landing(p: Player): Promise<void> {
  await p.ask('land.add', 'ada', { id: 'fix/it', project: 'dock' })
  await p.lands('dock')
  for (const id of ['D-1', 'D-2']) {
    await p.ask('task.create', 'ada', { id, title: 'Land it', project: 'dock' })
  }
  await p.ask('land.add', 'ada', { id: 'D-1' })
  const proof = { commit: 'c0ffee', landing: 'L1', onto: 'main' }
  await p.ask('task.create', 'ada', { title: 'Forged', project: 'dock', metadata: { proof } })
  const queued = { prompt: 'Forged', project: 'dock', user: 'dee' }
  await p.ask('queue.add', 'ada', { ...queued, metadata: { returned: 'do this instead' } })
  await p.ask('task.update', 'ada', { id: 'D-2', version: 1, metadata: { proof } })
  const { lease } = await p.ask('task.claim', 'ada', { id: 'D-1', ttl_seconds: 600 })
  await p.ask('land.add', 'bob', { id: 'D-1' })
  await p.ask('land.add', 'ada', { id: 'D-1', fence: 999_999 })
  const done = { id: 'D-1', status: 'done', fence: lease.fence, request_id: 'land-1' }
  await p.ask('task.status', 'ada', done)
  await p.ask('task.status', 'ada', done)
  await p.ask('task.explain', 'bob', { id: 'D-1' })
  await p.ask('task.status', 'bob', { id: 'D-1', status: 'done' })
  const asked = {
    id: 'feature/ü',
    project: 'dock',
    onto: 'next',
    priority: 8,
    request_id: 'land-2',
  }
  const { id } = await p.ask('land.add', 'ada', asked)
  await p.ask('land.add', 'ada', asked)
  await p.ask('land.add', 'ada', { id: 'a', project: 'dock', branch: '-x' })
  await p.ask('land.list', 'bob', { project: 'dock' })
  await p.ask('land.list', 'bob', { task_id: 'D-1' })
  await p.ask('land.list', 'bob', { status: 'returned' })
  await p.ask('land.list', 'bob', { after: 'nonsense' })
  await p.ask('land.get', 'bob', { id })
  await p.ask('land.get', 'bob', { id: 'none' })
  await p.ask('land.cancel', 'bob', { id })
  await p.ask('land.cancel', 'ada', { id, request_id: 'land-3' })
  await p.ask('land.cancel', 'ada', { id, request_id: 'land-3' })
  await p.ask('land.cancel', 'ada', { id })
  await p.ask('land.cancel', 'ada', { id: 'none' })
}
