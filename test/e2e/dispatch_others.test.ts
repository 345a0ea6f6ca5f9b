import { describe, expect, test } from 'vitest'
import { dispatching, type Dispatching } from '../support/dispatching.ts'
import { isAlive, type Running, until } from '../support/processes.ts'

/** A program of somebody else's that works on a task: no runner of ours. */
function stranger(all: Dispatching): Running {
  const program = ['/bin/sh', '-c', 'while [ ! -e "$OUT/go" ]; do sleep 0.05; done', 'sh']
  return all.place.start([], { program, env: { OUT: all.out } })
}

/** Longer than a dispatcher gives its own runners to go. */
async function expectLeftAlone(running: Running): Promise<void> {
  const since = performance.now()
  await until('time enough', () => performance.now() - since > 3_000 || !isAlive(running.pid))
  expect(isAlive(running.pid)).toBe(true)
}

describe('whoever works on a task without a dispatcher', () => {
  test('is not killed when the lease that names its process is over', async () => {
    const all = dispatching()
    await all.serve()
    const running = stranger(all)
    await all.place.ok(['task', 'add', 'The answer', '--id', '42'])
    const pid = String(running.pid)
    const args = ['lock', 'acquire', 'task:42', '--agent', 'me', '--ttl', '1s', '--pid', pid]
    await all.place.ok(args)
    await until('it is over', async () => {
      return !(await all.daemon.ok('lock.status', { name: 'task:42' })).is_locked
    })
    await expectLeftAlone(running)
    all.write('go')
    expect(await running.ended).toMatchObject({ code: 0, signal: null })
  })

  test('is not killed when an admin takes its lease away', async () => {
    const all = dispatching()
    await all.serve()
    const running = stranger(all)
    await all.place.ok(['task', 'add', 'The answer', '--id', '42'])
    const pid = String(running.pid)
    await all.place.ok(['lock', 'acquire', 'task:42', '--agent', 'me', '--pid', pid])
    await all.place.ok(['lock', 'force-release', 'task:42'])
    await expectLeftAlone(running)
    all.write('go')
    expect(await running.ended).toMatchObject({ code: 0, signal: null })
  })

  test('an agent that takes an enqueued task itself has it alone, and ends it itself', async () => {
    const all = dispatching({ slots: { max: 0 } })
    await all.serve()
    await all.add('ada-1', 'ada')
    const claimed = await all.place.ok(['task', 'claim', '--queued', '--agent', 'me'])
    expect(claimed).toMatchObject({ task: { id: 'ada-1' }, run: { id: 'ada-1.1' } })
    all.configure({ slots: { max: 2 } })
    await all.add('ada-2', 'ada')
    await all.add('ben-1', 'ben')
    await all.become('ben-1', 'done')
    expect(await all.task('ada-2')).toMatchObject({ status: 'todo' })
    const fence = String(claimed.lease.fence)
    await all.place.ok(['task', 'done', 'ada-1', '--agent', 'me', '--fence', fence])
    await all.become('ada-2', 'done')
    expect(all.lines('start').map(({ task }) => task)).toEqual(['ben-1', 'ada-2'])
  })
})
