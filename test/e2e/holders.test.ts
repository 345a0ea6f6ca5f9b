import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import { PARTICIPANT, type Sandbox, stateOf, until } from '../support/processes.ts'

const A = ['--agent', 'agent-A']
const B = ['--agent', 'agent-B']

async function withTask(): Promise<Sandbox> {
  const place = sandbox()
  await place.ok(['task', 'add', 'The answer', '--id', '42'])
  return place
}

async function untilFree(place: Sandbox): Promise<void> {
  await until('the lease runs out', async () => {
    return !(await place.ok(['lock', 'status', 'task:42'])).is_locked
  })
}

describe('automatic locking by status', () => {
  test('in_progress claims; others are refused; any other status frees the lock', async () => {
    const place = await withTask()
    const claim = await place.ok(['task', 'status', '42', 'in_progress', ...A])
    expect(claim).toMatchObject({
      task: { status: 'in_progress', assignee: 'agent-A', lock_until: claim.lease.expires_at },
      lease: { name: 'task:42', holder: 'agent-A' },
      run: { id: '42.1' },
    })
    for (const status of ['in_progress', 'review', 'done']) {
      const { message } = await place.refused(['task', 'status', '42', status, ...B], 'held', 5)
      expect(message).toMatch(/^Task is locked by agent-A/)
    }
    const again = await place.ok(['task', 'status', '42', 'in_progress', ...A])
    expect(again.lease.fence).toBe(claim.lease.fence)
    const moved = await place.ok(['task', 'status', '42', 'review', ...A])
    expect(moved).toMatchObject({ task: { status: 'review', lock_until: null }, lease: null })
    const other = await place.ok(['task', 'status', '42', 'in_progress', ...B])
    expect(other.lease).toMatchObject({ holder: 'agent-B' })
    expect(other.lease.fence).toBeGreaterThan(claim.lease.fence)
  })

  test('after it has expired: Task must be locked by agent; acquiring it again works', async () => {
    const place = await withTask()
    await place.ok(['task', 'status', '42', 'in_progress', ...A, '--ttl', '1s'])
    await untilFree(place)
    const back = await place.ok(['task', 'show', '42'])
    expect(back).toMatchObject({ status: 'todo', assignee: null })
    const late = await place.cli(['task', 'status', '42', 'done', ...A])
    expect(late).toMatchObject({ code: 5, out: '' })
    expect(late.err).toMatch(/^error: Task must be locked by agent to update status/)
    expect(late.err).toMatch(/\n {2}next: Take it again, .* leasehold task claim 42/)
    await place.refused(['task', 'status', '42', 'done', ...A], 'lease_expired', 5)
    await place.ok(['task', 'status', '42', 'in_progress', ...A])
    const done = await place.ok(['task', 'status', '42', 'done', ...A])
    expect(done.task).toMatchObject({ status: 'done' })
  })

  test('statuses are understood in other spellings, and nonsense is refused', async () => {
    const place = await withTask()
    for (const [said, meant] of [
      ['In Progress', 'in_progress'],
      ['pending', 'todo'],
      ['running', 'in_progress'],
      ['REVIEW', 'review'],
      ['completed', 'done'],
    ] as const) {
      const { task } = await place.ok(['task', 'status', '42', said, ...A])
      expect(task.status, said).toBe(meant)
    }
    await place.refused(['task', 'status', '42', 'sideways', ...A], 'invalid', 2)
  })
})

describe('manual locking', () => {
  test('a held lock leaves the status alone, and only its holder may change the task', async () => {
    const place = await withTask()
    const { fence } = await place.ok(['lock', 'acquire', 'task:42', '--ttl', '10m', ...A])
    expect(await place.ok(['task', 'show', '42'])).toMatchObject({ status: 'todo', attempts: 0 })
    await place.refused(['task', 'status', '42', 'in_progress', ...B], 'held', 5)
    await place.refused(['task', 'edit', '42', '--version', '1', '--title', 'x', ...B], 'held', 5)
    await place.refused(['lock', 'release', 'task:42', ...B], 'held', 5)
    await place.refused(['task', 'claim', '42', ...B], 'held', 5)
    await place.nothingReady(...B)
    await place.ok(['task', 'edit', '42', '--version', '1', '--title', 'Mine', ...A])
    const claim = await place.ok(['task', 'status', '42', 'in_progress', ...A])
    expect(claim.lease.fence).toBe(fence)
  })

  test('what an agent holds admits its subagents, and siblings exclude each other', async () => {
    const place = await withTask()
    await place.ok(['lock', 'acquire', 'task:42', '--agent', 'S'])
    const renewed = await place.ok(['lock', 'renew', 'task:42', '--agent', 'S/one'])
    expect(renewed.holder).toBe('S')
    await place.refused(['lock', 'renew', 'task:42', '--agent', 'Sibling'], 'held', 5)
    await place.ok(['lock', 'acquire', 'x', '--agent', 'S/one'])
    await place.refused(['lock', 'renew', 'x', '--agent', 'S/two'], 'held', 5)
  })
})

describe('a holder that was away past its TTL', () => {
  test('all it then writes is refused as fence_stale, and the other’s work stands', async () => {
    const place = await withTask()
    const { lease, task } = await place.ok(['task', 'claim', '42', '--ttl', '1s', ...A])
    await untilFree(place)
    const theirs = await place.ok(['task', 'claim', '42', ...B])
    const fence = ['--fence', `${lease.fence}`]
    const late = [
      ['lock', 'renew', 'task:42'],
      ['lock', 'release', 'task:42'],
      ['lock', 'handoff', 'task:42', '--to', 'friend'],
      ['task', 'status', '42', 'done'],
      ['task', 'done', '42'],
      ['task', 'edit', '42', '--version', `${task.version}`, '--title', 'Late'],
    ]
    for (const write of late) {
      const { details } = await place.refused([...write, ...fence, ...A], 'fence_stale', 5)
      expect(details).toMatchObject({ fence: lease.fence, current_fence: theirs.lease.fence })
      // The environment that `run` gives says the same thing.
      const env = { LEASEHOLD_LOCK: 'task:42', LEASEHOLD_FENCE: `${lease.fence}` }
      await place.refused([...write, ...A], 'fence_stale', 5, { env })
    }
    const now = await place.ok(['task', 'show', '42'])
    expect(now).toMatchObject({ title: 'The answer', status: 'in_progress', assignee: 'agent-B' })
    expect(now.version).toBe(theirs.task.version)
    const status = await place.ok(['lock', 'status', 'task:42'])
    expect(status).toMatchObject({ lock_holder: 'agent-B', fence: theirs.lease.fence })
  })

  for (const store of [undefined, 'file:files']) {
    const kind = store ? 'file' : 'sqlite'
    test(`a process stopped in between is refused when it wakes, on ${kind}`, async () => {
      const place = sandbox()
      place.env['LEASEHOLD_STORE'] = store
      await place.ok(['task', 'add', 'The answer', '--id', '42'])
      const program = [process.execPath, PARTICIPANT]
      const sleeper = place.start(['away', '42'], { program, input: 'go\n' })
      await sleeper.said(/"fence"/)
      await until('it is stopped', () => stateOf(sleeper.pid) === 'T')
      await untilFree(place)
      const theirs = await place.ok(['task', 'claim', '42', ...B])
      sleeper.kill('SIGCONT')
      const { code, out } = await sleeper.ended
      expect({ code, said: out.trim().split('\n').slice(2) }).toEqual({
        code: 0,
        said: Array.from({ length: 4 }, () => '"fence_stale"'),
      })
      const now = await place.ok(['task', 'show', '42'])
      const { version } = theirs.task
      expect(now).toMatchObject({ title: 'The answer', assignee: 'agent-B', version })
    })
  }

  test('even under its own agent id, an older fence does not speak for a newer lease', async () => {
    const place = await withTask()
    const first = await place.ok(['lock', 'acquire', 'x', ...A])
    const second = await place.ok(['lock', 'acquire', 'x', ...A])
    expect(second.fence).toBeGreaterThan(first.fence)
    const old = ['--fence', `${first.fence}`, ...A]
    await place.refused(['lock', 'release', 'x', ...old], 'fence_stale', 5)
    await place.ok(['lock', 'release', 'x', '--fence', `${second.fence}`, ...A])
  })
})

describe('LEASEHOLD_FENCE', () => {
  test('speaks for the lock in LEASEHOLD_LOCK only', async () => {
    const place = await withTask()
    const x = await place.ok(['lock', 'acquire', 'x', ...A])
    const y = await place.ok(['lock', 'acquire', 'y', ...A])
    const env = { LEASEHOLD_LOCK: 'x', LEASEHOLD_FENCE: `${x.fence}` }
    await place.ok(['lock', 'renew', 'x', ...A], { env })
    // Were it sent for y too, it would be stale there.
    await place.ok(['lock', 'renew', 'y', ...A], { env })
    const wrong = { ...env, LEASEHOLD_FENCE: `${y.fence}` }
    await place.refused(['lock', 'renew', 'x', ...A], 'fence_stale', 5, { env: wrong })
    await place.ok(['lock', 'renew', 'x', '--fence', `${x.fence}`, ...A], { env: wrong })
    const claim = await place.ok(['task', 'status', '42', 'in_progress', ...A], { env: wrong })
    expect(claim.lease.fence).toBeGreaterThan(y.fence)
  })

  test('LEASEHOLD_AGENT says who is asking, and --agent wins over it', async () => {
    const place = await withTask()
    const env = { LEASEHOLD_AGENT: 'from-env' }
    expect((await place.ok(['lock', 'acquire', 'a'], { env })).holder).toBe('from-env')
    expect((await place.ok(['lock', 'acquire', 'b', ...A], { env })).holder).toBe('agent-A')
    expect((await place.ok(['lock', 'acquire', 'c'])).holder).toMatch(/^cli:.+@.+/)
  })
})
