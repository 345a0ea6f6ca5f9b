import { expect, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import { type Dispatching, dispatching } from '../support/dispatching.ts'
import { caused, SITUATIONS, STAGE } from '../support/situations.ts'

const healthOf = async (all: Dispatching) => (await all.daemon.ok('stuck.get')).health

/** Stages a situation, expects its cause to be told as `explain` tells it, and ends it. */
async function during(
  all: Dispatching,
  name: keyof typeof SITUATIONS,
  look: (cause: Json) => unknown = () => undefined,
): Promise<void> {
  const { kind, says, stage, ...more } = SITUATIONS[name]
  const end = await stage(all)
  const cause = await caused(all, kind)
  expect(cause.what).toMatch(says)
  if ('task' in more) {
    const { sentence } = await all.daemon.ok('task.explain', { id: more.task })
    expect(cause.why).toBe(sentence)
  }
  await look(cause)
  await end()
}

test('why nothing happens is told by its root, in the words of explain', async () => {
  const all = dispatching(STAGE)
  const daemon = await all.serve()
  expect(await daemon.ok('stuck.get')).toMatchObject({
    health: { state: 'ok', why: '' },
    items: [],
    more: 0,
  })

  await during(all, 'paused', async (paused) => {
    expect(paused).toMatchObject({ severity: 'bad', tasks: 1 })
    expect(paused.about).toEqual([
      { kind: 'user', id: 'ada' },
      { kind: 'task', id: 'ada-1' },
    ])
    expect(await healthOf(all)).toEqual({ state: 'paused', why: paused.what })
    expect(paused.actions).toMatchObject([{ operation: 'queue.resume', input: {} }])
  })
  expect(await healthOf(all)).toEqual({ state: 'ok', why: '' })

  await during(all, 'user busy', (busy) => {
    expect(busy.about).toEqual([
      { kind: 'task', id: 'ada-1' },
      { kind: 'user', id: 'ada' },
      { kind: 'task', id: 'ada-2' },
    ])
    const asked = busy.actions.map((each: Json) => each.operation)
    // To wait is ordinary: nothing that would end healthy work is offered.
    expect(asked).toEqual(['queue.limit'])
  })

  await during(all, 'limit full', async (full) => {
    // In a terminal, too.
    expect((await all.place.cli(['stuck'])).out).toContain(full.what)
    expect((await all.place.cli(['status'])).out).toContain('STUCK')
  })

  await during(all, 'project unserved', async (unserved) => {
    expect((await healthOf(all)).state).toBe('degraded')
    const { items: alerts } = await daemon.ok('alert.list')
    expect(alerts).toMatchObject([{ id: unserved.id, rule: 'unserved', message: unserved.what }])
  })

  await during(all, 'dead holder within its TTL', ({ why }) => {
    expect(why).toMatch(/git:web: docs-writer holds it until 2/)
  })

  await during(all, 'deadlock victim', ({ why }) => {
    expect(why).toMatch(/^Waiting would never end: .*bob waits for x/)
  })

  await during(all, 'store read-only', async ({ what }) => {
    expect((await healthOf(all)).why).toBe(what)
  })

  await during(all, 'agent program missing', (missing) => {
    expect(missing.actions).toEqual([
      { says: 'Retry task eve-1', operation: 'queue.retry', input: { id: 'eve-1' }, admin: false },
    ])
  })
  expect((await all.place.cli(['stuck'])).out).toContain('Task eve-1 failed: its last run')

  await during(all, 'no project')
  await daemon.stop()
  // Without a daemon the command looks at the store itself.
  const { items, health } = await all.place.ok(['stuck'])
  const none = items.find(({ kind }: Json) => kind === 'no_dispatcher')
  expect(health).toEqual({ state: 'degraded', why: none.what })
  expect(none.what).toBe('1 task waits for a dispatcher, and none is running')
  expect(none.next).toBe('Start one: leasehold up')
  expect(none.since).not.toBeNull()
})
