import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import { putTask } from '../../src/core/tasks/ready.ts'
import { FileBackend } from '../../src/stores/file/backend.ts'
import { checkFileStore } from '../../src/stores/file/check.ts'
import { list } from '../../src/stores/file/folder.ts'
import type { PublishPause, Step } from '../../src/stores/file/publish.ts'
import { machine } from '../../src/machine/machine.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, expectRefusal, temporaryFolder, Verbs } from '../support/helpers.ts'

const me = callerOf('me')
const sleeper = callerOf('sleeper')

function open(dir: string, lock: boolean, pause?: PublishPause): Verbs {
  const options = { dir, busy_timeout_ms: 5_000, lock, ...(pause && { pause }) }
  return new Verbs(new Store(new FileBackend(options), machine))
}

/** Stops whoever comes to `step` for the first time, until it is opened. */
function gateAt(step: Step) {
  let release = () => {}
  let arrive = () => {}
  const opened = new Promise<void>((resolve) => void (release = resolve))
  const arrived = new Promise<void>((resolve) => void (arrive = resolve))
  let used = false
  const pause: PublishPause = (at) => {
    if (at !== step || used) return undefined
    used = true
    arrive()
    return opened
  }
  return { pause, open: () => release(), arrived }
}

/** The sleeper stops at `step` on its way to state 2; meanwhile others publish `states` states. */
async function sleepThrough(dir: string, step: Step, states: number, lock: boolean) {
  const gate = gateAt(step)
  const others = open(dir, lock)
  await others.take('first', me)
  const asked = open(dir, lock, gate.pause).take('wanted', sleeper)
  await gate.arrived
  for (let i = 0; i < states; i += 1) await others.take(`lock-${i}`, me)
  return { others, gate, asked }
}

afterEach(() => plant(undefined))

describe.each([true, false])('a writer stopped where it hurts (lock file: %s)', (lock) => {
  test('between reading and linking: its stray link is seen, and it decides again', async () => {
    const dir = temporaryFolder()
    const { others, gate, asked } = await sleepThrough(dir, 'link', 40, lock)
    expect(existsSync(join(dir, 'state.2.json'))).toBe(false)
    gate.open()
    const lease = await asked
    expect(await others.lease('wanted')).toEqual(lease)
    for (let i = 0; i < 40; i += 1) expect((await others.lease(`lock-${i}`))!.holder).toBe('me')
    expect(existsSync(join(dir, 'state.2.json'))).toBe(false)
    expect((await checkFileStore(dir)).problems).toEqual([])
  })

  test('between reading and linking, and the lock is taken meanwhile: it is refused', async () => {
    const dir = temporaryFolder()
    const { others, gate, asked } = await sleepThrough(dir, 'link', 40, lock)
    const theirs = await others.take('wanted', me)
    gate.open()
    await expectRefusal(asked, 'held')
    expect((await others.lease('wanted'))!.fence).toBe(theirs.fence)
  })

  test('between link and read-back: the lineage tells it that all is well', async () => {
    const dir = temporaryFolder()
    const { others, gate, asked } = await sleepThrough(dir, 'read_back', 40, lock)
    gate.open()
    expect(await others.lease('wanted')).toEqual(await asked)
    const granted = (await others.store.events(0, 1_000)).filter((e) => e.lock === 'wanted')
    expect(granted).toHaveLength(1)
  })
})

test('longer than the lineage reaches: the answer is "unknown", never a wrong one', async () => {
  const dir = temporaryFolder()
  const { others, gate, asked } = await sleepThrough(dir, 'read_back', 520, false)
  gate.open()
  const refusal = await expectRefusal(asked, 'unavailable')
  expect(refusal.next).toMatch(/same request id/)
  expect((await others.lease('wanted'))!.holder).toBe('sleeper')
})

test('S4: without the read-back an acknowledged update is lost', async () => {
  const dir = temporaryFolder()
  const { others, gate, asked } = await sleepThrough(dir, 'link', 40, false)
  plant('S4')
  gate.open()
  expect(await asked).toMatchObject({ holder: 'sleeper' })
  expect(await others.lease('wanted')).toBeUndefined()
})

/** Numbers from a seed, so that a failure can be run again. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

const WRITERS = 4
const UPDATES = 40

/** Each writer sometimes stops at a dangerous step until others have published 17 to 40 states. */
async function storm(dir: string, seed: number): Promise<{ acknowledged: number; pauses: number }> {
  const draw = random(seed)
  await open(dir, false).add('counter', me, { id: 'counter', metadata: { n: 0 } })
  let pauses = 0
  let awake = WRITERS
  const highest = () => list(dir).numbers[0] ?? 0
  const pause: PublishPause = async () => {
    if (draw() > 0.08 || awake === 1) return
    pauses += 1
    awake -= 1
    const until = highest() + 17 + Math.floor(draw() * 24)
    while (highest() < until && awake > 0) await new Promise((go) => void setImmediate(go))
    awake += 1
  }
  let acknowledged = 0
  const write = async () => {
    const { store } = open(dir, false, pause)
    for (let i = 0; i < UPDATES; i += 1) {
      await store.write((view) => {
        const task = view.get('task', 'counter')!
        putTask(view, task, { ...task, metadata: { n: (task.metadata['n'] as number) + 1 } })
      })
      acknowledged += 1
    }
    awake -= 1
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
  return { acknowledged, pauses }
}

test.each([1, 2])('no update is lost in a storm of aimed pauses (seed %i)', async (seed) => {
  const dir = temporaryFolder()
  const { acknowledged, pauses } = await storm(dir, seed)
  expect(pauses).toBeGreaterThan(5)
  const { metadata } = await open(dir, true).task('counter')
  expect(metadata['n']).toBe(acknowledged)
  expect(acknowledged).toBe(WRITERS * UPDATES)
  expect((await checkFileStore(dir)).problems).toEqual([])
  expect(readdirSync(dir).filter((name) => name.startsWith('tmp.'))).toEqual([])
})

test('S4: the same storm without the read-back loses updates', async () => {
  const dir = temporaryFolder()
  plant('S4')
  const { acknowledged } = await storm(dir, 1)
  const { metadata } = await open(dir, true).task('counter')
  expect(metadata['n']).toBeLessThan(acknowledged)
})

test('nobody makes progress: unavailable after the timeout, and well again later', async () => {
  const dir = temporaryFolder()
  let thief = true
  const steal: PublishPause = (step) => {
    if (step !== 'link' || !thief) return
    for (const name of readdirSync(dir)) if (name.startsWith('tmp.')) rmSync(join(dir, name))
  }
  const backend = new FileBackend({ dir, busy_timeout_ms: 50, pause: steal })
  const verbs = new Verbs(new Store(backend, machine))
  const refusal = await expectRefusal(verbs.take('a', me), 'unavailable')
  expect(refusal.message).toMatch(/Nobody could publish/)
  thief = false
  expect((await verbs.take('a', me)).name).toBe('a')
})
