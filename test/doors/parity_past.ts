import type { Player } from './parity_player.ts'

/** What the other parts of the script left behind, as those who watch ask for it. */
export async function past(p: Player): Promise<void> {
  await p.ask('event.list', 'ada', { task_id: 'T-1' })
  await p.ask('event.list', 'ada', { lock: 'x', by: 'bob', since_seconds: 3600 })
  const { next } = await p.ask('event.list', 'ada', { lock: 'x', limit: 2 })
  await p.ask('event.list', 'ada', { lock: 'x', limit: 2, after: next })
  await p.ask('event.list', 'ada', { by: 'nobody' })
  await p.ask('event.list', 'ada', { type: 'lock', limit: 3 })
  await p.ask('event.list', 'ada', { type: 'task.moved', limit: 3 })
  await p.ask('event.list', 'ada', { after: 'nonsense' })
  await p.ask('run.output', 'ada', { id: 'T-1.1' })
  await p.ask('run.output', 'ada', { id: 'T-1.1', after: '12-0', bytes: 10 })
  await p.ask('run.output', 'ada', { id: 'none.1' })
  await p.ask('task.peek', 'ada', { ids: ['T-1', 'none', 'T-2'] })
  await p.ask('task.peek', 'ada', { status: 'done', limit: 1 })
  await p.ask('task.peek', 'ada', { text: 't-1', limit: 2 })
  await p.ask('task.peek', 'ada', { text: 'no task says this', project: 'web' })
  await p.ask('task.peek', 'ada', { after: 'nonsense' })
  await p.ask('lock.peek', 'ada', { names: ['x', 'never held', 'path:x'] })
  await p.ask('lock.waiters', 'ada')
  await p.ask('lock.waiters', 'ada', { after: 'nonsense' })
}
