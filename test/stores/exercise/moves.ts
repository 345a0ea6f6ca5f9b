import { describe, expect, test } from 'vitest'
import type { Caller } from '../../../src/core/caller.ts'
import type { RefusalCode } from '../../../src/core/refusal.ts'
import { type Status, STATUSES } from '../../../src/core/rows.ts'
import { callerOf, expectRefusal, type Verbs } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const ADMIN = callerOf('root', { admin: true })

type Verdict = 'ok' | RefusalCode
const WHO = ['holder', 'other', 'nobody', 'admin'] as const
type Who = (typeof WHO)[number]

interface Move {
  from: Status
  to: Status
  who: Who
}

/** Brings a new task to `status` by legal moves, with no lease on it (in_progress needs one). */
async function taskIn(verbs: Verbs, status: Status, id = 't'): Promise<void> {
  await verbs.add('x', callerOf('creator'), { id })
  if (status === 'todo') return
  await verbs.claim(id, ada)
  if (status !== 'in_progress') await verbs.move(id, status, ada)
}

/** Held by ada for the holder and for the other; held by nobody for the rest. */
async function prepare(verbs: Verbs, { from, to, who }: Move): Promise<void> {
  await taskIn(verbs, from, to)
  const held = who === 'holder' || who === 'other'
  if (held && from !== 'in_progress') await verbs.take(`task:${to}`, ada)
}

/** What the contract says (R12, R14), written down apart from the code. */
function verdictOf({ from, to, who }: Move): Verdict {
  const held = who === 'holder' || who === 'other' || from === 'in_progress'
  const isHolder = who === 'holder'
  if (held && !isHolder && !(who === 'admin' && to === 'cancelled')) return 'held'
  if (from === 'done' && to !== 'done')
    return who === 'admin' && to === 'todo' ? 'ok' : 'illegal_move'
  if ((from === 'failed' || from === 'cancelled') && to !== 'todo' && to !== from) {
    return 'illegal_move'
  }
  if (held) return 'ok'
  const open: Partial<Record<Status, Status[]>> = {
    todo: ['in_progress', 'cancelled'],
    review: ['in_progress', 'done', 'todo'],
    failed: ['todo'],
    cancelled: ['todo'],
  }
  return open[from]?.includes(to) ? 'ok' : 'lease_expired'
}

const CALLERS: Record<Who, Caller> = { holder: ada, other: bob, nobody: bob, admin: ADMIN }

async function expectDone(verbs: Verbs, { to, who }: Move): Promise<void> {
  await verbs.move(to, to, CALLERS[who])
  const { status, lock_fence, run_id } = await verbs.task(to)
  const lease = await verbs.lease(`task:${to}`)
  const running = (await verbs.runs(to)).filter((run) => run.ended_at === null)
  const works = to === 'in_progress'
  expect({ status, locked: lock_fence !== null }).toEqual({ status: to, locked: works })
  expect(lease?.ended_at === null).toBe(works)
  expect(running.map((run) => [run.id, run.fence])).toEqual(works ? [[run_id, lease?.fence]] : [])
}

async function expectRefused(verbs: Verbs, { to, who }: Move, code: RefusalCode): Promise<void> {
  const before = await verbs.task(to)
  await expectRefusal(verbs.move(to, to, CALLERS[who]), code)
  expect(await verbs.task(to)).toEqual(before)
}

/** R12, R14: how a task changes status. */
export function exerciseMoves(begin: Begin): void {
  describe('moving a task', () => {
    const table = STATUSES.flatMap((from) => WHO.map((who) => ({ from, who })))

    // Each move has a task of its own, with the name of where it goes.
    test.each(table)(
      'from $from as $who goes where it may, and nowhere else',
      async ({ from, who }) => {
        const { verbs } = begin()
        const moves = STATUSES.map((to) => ({ from, to, who }))
        await Promise.all(moves.map((move) => prepare(verbs, move)))
        for (const move of moves) {
          const verdict = verdictOf(move)
          if (verdict === 'ok') await expectDone(verbs, move)
          else await expectRefused(verbs, move, verdict)
        }
      },
    )

    test('to in_progress keeps the holder its lease, fence and run', async () => {
      const { verbs } = begin()
      await taskIn(verbs, 'in_progress')
      const before = await verbs.task('t')
      const { lease } = await verbs.move('t', 'in_progress', ada)
      expect(lease).toMatchObject({ fence: before.lock_fence })
      expect(await verbs.task('t')).toEqual(before)
    })

    test('to any other status releases the lock and closes the run once', async () => {
      const { verbs } = begin()
      for (const [i, to] of (
        ['review', 'done', 'failed', 'cancelled', 'todo'] as const
      ).entries()) {
        const id = `t${i}`
        await verbs.add('x', ada, { id })
        const { lease } = await verbs.claim(id, ada)
        await verbs.move(id, to, ada, lease.fence)
        expect(await verbs.lease(`task:${id}`)).toMatchObject({ ended_at: lease.acquired_at })
        const [run, more] = await verbs.runs(id)
        expect(more).toBeUndefined()
        expect(run!.ended_at).not.toBeNull()
        expect(run!.outcome).toBe(`moved to ${to}`)
        await expectRefusal(verbs.move(id, to, ada, lease.fence), 'lease_expired')
      }
    })

    test('is refused for a stale fence before anything else is looked at', async () => {
      const { verbs } = begin()
      await taskIn(verbs, 'in_progress')
      const old = (await verbs.task('t')).lock_fence!
      await verbs.release('task:t', ada)
      await verbs.claim('t', bob)
      await expectRefusal(verbs.move('t', 'done', ada, old), 'fence_stale')
      await verbs.move('t', 'done', bob)
      await expectRefusal(verbs.move('t', 'todo', ada, old), 'fence_stale')
    })

    test('says by whom it is locked, or that it must be locked', async () => {
      const { verbs } = begin()
      await taskIn(verbs, 'in_progress')
      const held = await expectRefusal(verbs.move('t', 'done', bob), 'held')
      expect(held.message).toMatch(/^Task is locked by ada/)
      await verbs.release('task:t', ada)
      const free = await expectRefusal(verbs.move('t', 'done', bob), 'lease_expired')
      expect(free.message).toMatch(/^Task must be locked by agent to update status/)
      expect(free.next).toContain('again')
    })

    test('late, after the lease expired, can be made good by claiming again', async () => {
      const { verbs, machine } = begin()
      await verbs.add('x', ada, { id: 't' })
      const { lease } = await verbs.claim('t', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      await expectRefusal(verbs.move('t', 'done', ada, lease.fence), 'lease_expired')
      const again = await verbs.claim('t', ada)
      await verbs.move('t', 'done', ada, again.lease.fence)
    })

    test('to cancelled while it is held is for the holder, its creator and admins', async () => {
      const { verbs } = begin()
      await taskIn(verbs, 'in_progress')
      await expectRefusal(verbs.move('t', 'cancelled', bob), 'held')
      await verbs.move('t', 'cancelled', callerOf('creator'))
      expect(await verbs.runs('t')).toMatchObject([{ status: 'cancelled' }])
      await verbs.take('task:t', bob)
    })

    test('out of done takes an admin, and goes to todo only', async () => {
      const { verbs } = begin()
      await taskIn(verbs, 'done')
      await expectRefusal(verbs.move('t', 'todo', ada), 'illegal_move')
      await expectRefusal(verbs.move('t', 'review', ADMIN), 'illegal_move')
      const { task } = await verbs.move('t', 'todo', ADMIN)
      expect(task).toMatchObject({ status: 'todo', assignee: null })
      expect(await verbs.ready()).toEqual(['t'])
    })

    test('to in_progress with dependencies unmet is illegal, also for the holder', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a' })
      await verbs.add('x', ada, { id: 'b', depends_on: ['a'] })
      await expectRefusal(verbs.move('b', 'in_progress', ada), 'illegal_move')
      await verbs.take('task:b', ada)
      await expectRefusal(verbs.move('b', 'in_progress', ada), 'illegal_move')
    })

    test('of a task that does not exist says so', async () => {
      const { verbs } = begin()
      await expectRefusal(verbs.move('nope', 'done', ada), 'not_found')
    })
  })
}
