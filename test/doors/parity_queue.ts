import type { Player } from './parity_player.ts'

/** Of a host that nobody here can ask about. */
const PROCESS = { host: 'elsewhere', seat: 'elsewhere/1', pid: 4242, start: 1 }
const GROUP = { ...PROCESS, mark: '0'.repeat(32) }
const ZOE = { project: 'q', user: 'zoë' }
const YAN = { project: 'q', user: 'yan' }

/** Everything about the queue that needs no dispatcher. */
export async function queue(p: Player): Promise<void> {
  await additions(p)
  await settings(p)
  await busyUsers(p)
  await endings(p)
}

async function additions(p: Player): Promise<void> {
  const full = {
    ...ZOE,
    id: 'Q-1',
    prompt: 'Mend it – größer 錠\n"and" all',
    title: 'Mend',
    priority: 8,
    group: 'g',
    labels: ['bug'],
    metadata: { deep: { list: [1, null] } },
    agent_command: 'codex',
    time_limit_seconds: 7200.5,
    retries: 2,
  }
  await p.ask('queue.add', 'ada', full)
  await p.ask('queue.add', 'bob', full)
  await p.ask('queue.add', 'ada', { ...ZOE, prompt: '\n\t \u0007\n  The first line\nof many' })
  const once = { ...ZOE, id: 'Q-2', prompt: 'Once', request_id: 'q1' }
  await p.ask('queue.add', 'ada', once)
  await p.ask('queue.add', 'ada', once)
  await p.ask('queue.add', 'ada', { ...once, prompt: 'Twice' })
  await p.ask('queue.add', 'bob', { ...YAN, id: 'Q-3', prompt: 'After', depends_on: ['Q-2'] })
  await p.ask('queue.add', 'bob', { ...YAN, id: 'Q-4', prompt: 'x'.repeat(300), priority: 0 })
  await p.ask('task.update', 'ada', { id: 'Q-4', version: 1, title: 'Not hers to change' })
  await p.ask('queue.add', 'ada', { ...ZOE, prompt: 'x', depends_on: ['none'] })
  await p.ask('queue.add', 'ada', { ...ZOE, prompt: 'x', title: 'x'.repeat(501) })
  await p.ask('queue.add', 'ada', { ...ZOE, prompt: '' })
  await p.ask('queue.add', 'ada', { ...ZOE, prompt: 'x', title: 'a\u001b[31mb' })
  await p.ask('queue.add', 'ada', { prompt: 'x', user: 'zoë' })
  await p.ask('queue.status', 'bob')
  await p.ask('queue.list', 'bob', { project: 'nowhere' })
  await p.ask('queue.list', 'bob', { project: 'q' })
  await p.ask('queue.list', 'bob', { after: 'nonsense' })
  const page = await p.ask('queue.list', 'bob', { user: 'zoë', limit: 2 })
  await p.ask('queue.list', 'bob', { user: 'zoë', limit: 2, after: page.next })
}

async function settings(p: Player): Promise<void> {
  for (const which of [{}, { user: 'zoë' }, { project: 'q' }, YAN]) {
    await p.ask('queue.pause', 'cy', which)
    await p.ask('queue.status', 'bob')
    await p.ask('queue.resume', 'cy', which)
  }
  await p.ask('queue.limit', 'cy', { project: 'q', max: 1 })
  await p.ask('queue.limit', 'cy', { group: 'g', max: 0 })
  await p.ask('task.claim', 'bob', { id: 'Q-1', queued: true })
  for (const which of [{ project: 'q' }, { group: 'g' }, {}]) {
    await p.ask('queue.limit', 'cy', { ...which, max: null })
  }
  await p.ask('queue.limit', 'cy', { user: 'zoë', weight: 2.5 })
  await p.ask('queue.limit', 'cy', { user: 'zoë', max: 1, weight: 1 })
  await p.ask('queue.limit', 'cy', {})
  await p.ask('queue.limit', 'cy', { weight: 2 })
  await p.ask('queue.limit', 'cy', { project: 'q', user: 'zoë', max: 2 })
  await p.ask('queue.limit', 'cy', { max: -1 })
}

async function busyUsers(p: Player): Promise<void> {
  await p.ask('task.claim', 'bob', { id: 'Q-1' })
  await p.ask('task.status', 'bob', { id: 'Q-1', status: 'in_progress' })
  await p.ask('task.claim', 'bob', { queued: true, label: 'no such label' })
  const claim = await p.ask('task.claim', 'bob', { id: 'Q-1', queued: true, ttl_seconds: 2000 })
  await p.ask('task.claim', 'ada', { id: 'Q-2', queued: true })
  await p.ask('lock.status', 'ada', { name: 'user:zoë' })
  await p.ask('lock.status', 'ada', { name: 'user:yan' })
  await p.ask('lock.acquire', 'ada', { names: ['user:zoë'] })
  const waiting = await p.waits('user:zoë', 'lock.acquire', 'ada', {
    names: ['user:zoë'],
    wait_seconds: 30,
  })
  await p.ask('lock.explain', 'ada', { name: 'user:zoë' })
  await p.ask('lock.list', 'ada')
  await p.ask('queue.status', 'bob')
  await p.ask('queue.cleanup', 'cy', { older_than_seconds: 3600 })
  await p.ask('queue.cancel', 'cy', { id: claim.task.id })
  await p.ask('lock.force_release', 'cy', { name: 'user:zoë', reason: 'stuck' })
  await waiting.got
  await p.ask('task.get', 'ada', { id: claim.task.id })
  await p.ask('lock.acquire', 'ada', { names: ['user:yan'] })
  await p.ask('queue.release_user', 'cy', { user: 'zoë', task_id: 'Q-2' })
  await p.ask('queue.release_user', 'cy', { user: 'zoë' })
  await p.ask('queue.release_user', 'cy', { user: 'nobody' })
  await p.ask('queue.retry', 'ada', { id: claim.task.id })
  await p.ask('queue.cancel', 'bob', { id: claim.task.id, fence: claim.lease.fence })
}

async function endings(p: Player): Promise<void> {
  const claim = await p.ask('task.claim', 'bob', { id: 'Q-1', queued: true, ttl_seconds: 2000 })
  const run = { id: claim.run.id as string, fence: claim.lease.fence as number }
  await p.ask('queue.release_user', 'cy', { user: 'zoë', task_id: 'Q-1' })
  const ended = { ...run, process: PROCESS, group: GROUP }
  await p.ask('run.start', 'bob', ended)
  await p.ask('run.finish', 'bob', run)
  await p.ask('queue.cancel', 'ada', { id: 'Q-2' })
  await p.ask('queue.retry', 'ada', { id: 'Q-2', request_id: 'again' })
  await p.ask('queue.retry', 'ada', { id: 'Q-2', request_id: 'again' })
  await p.ask('queue.retry', 'ada', { id: 'Q-2' })
  for (const verb of ['cancel', 'retry'] as const) {
    await p.ask(`queue.${verb}`, 'ada', { id: 'none' })
  }
  const second = await p.ask('task.claim', 'bob', { id: 'Q-2', queued: true })
  const fresh = { id: second.run.id as string, fence: second.lease.fence as number }
  await p.ask('queue.cancel', 'bob', { id: 'Q-2', fence: 999_999 })
  await p.ask('queue.cancel', 'ada', { id: 'Q-2', fence: fresh.fence })
  for (const verb of ['start', 'finish'] as const) {
    const more = verb === 'start' ? { process: PROCESS, group: GROUP } : { exit_code: 0 }
    await p.ask(`run.${verb}`, 'bob', { ...fresh, ...more, id: 'none.1' })
    await p.ask(`run.${verb}`, 'ada', { ...fresh, ...more })
    await p.ask(`run.${verb}`, 'bob', { ...fresh, ...more, fence: 999_999 })
  }
  await p.ask('run.finish', 'bob', { ...fresh, exit_code: 0 })
  await p.ask('queue.cancel', 'ada', { id: 'Q-2' })
  await p.ask('queue.retry', 'ada', { id: 'Q-2' })
  // It goes on holding its task and its user: lists that follow show both.
  const third = await p.ask('task.claim', 'bob', { id: 'Q-3', queued: true, ttl_seconds: 3000 })
  const last = { id: third.run.id as string, fence: third.lease.fence as number }
  await p.ask('run.start', 'bob', { ...last, process: PROCESS, group: GROUP })
  await p.ask('run.start', 'bob', { ...last, process: PROCESS, group: GROUP })
  await p.ask('run.finish', 'bob', { ...last, exit_code: 0 })
  await p.ask('run.get', 'ada', { id: last.id })
  await p.ask('run.get', 'ada', { id: 'Q-9.1' })
  await p.ask('run.list', 'ada', { task_id: 'Q-1' })
  await p.ask('run.list', 'ada', { task_id: 'Q-1', user: 'zoë', status: 'cancelled' })
  await p.ask('run.list', 'ada', { user: 'zoë' })
  await p.ask('run.list', 'ada', { after: 'nonsense' })
  await p.ask('queue.status', 'bob')
}
