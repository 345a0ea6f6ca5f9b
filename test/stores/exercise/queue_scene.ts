import type { Run } from '../../../src/core/schema/task.ts'
import { expect, test } from 'vitest'
import type { Claim } from '../../../src/core/tasks/claim.ts'
import type { ProcessRef } from '../../../src/core/rows.ts'
import { callerOf } from '../../support/helpers.ts'
import { QueueVerbs } from '../../support/queue_verbs.ts'
import { lookInto } from '../../simulation/queue_look.ts'
import { checkQueue, type UsedBefore } from '../../simulation/queue_rows.ts'
import type { Begin, Scene } from './scene.ts'

export const ada = callerOf('ada')
export const bob = callerOf('bob')

interface Begun {
  run: Run
  process: ProcessRef
  group: ProcessRef
}

/** A scene with a dispatcher `d` that serves the projects web and api in four slots. */
export class QueueScene {
  readonly machine: Scene['machine']
  readonly store: Scene['store']
  readonly verbs: QueueVerbs
  readonly process: ProcessRef
  private readonly used: UsedBefore = new Map()

  constructor({ machine, store }: Scene) {
    this.machine = machine
    this.store = store
    this.verbs = new QueueVerbs(store)
    this.process = machine.spawn()
  }

  /** Starts what is next; its id, or undefined when there is nothing to start. */
  async next(dispatcher = 'd'): Promise<string | undefined> {
    return (await this.verbs.dispatch(dispatcher, this.process))?.task.id
  }

  /** Starts all that can be started, in order. */
  async drain(dispatcher = 'd'): Promise<string[]> {
    const ids: string[] = []
    for (;;) {
      const id = await this.next(dispatcher)
      if (id === undefined) return ids
      ids.push(id)
    }
  }

  /** Starts what is next, which must be `id`. */
  async claim(id: string, dispatcher = 'd'): Promise<Claim> {
    const claim = await this.verbs.dispatch(dispatcher, this.process)
    expect(claim?.task.id).toBe(id)
    return claim!
  }

  /** The same, with its runner and its command's group at work. */
  async begun(id: string): Promise<Begun> {
    const { run } = await this.claim(id)
    const process = this.machine.spawn()
    const group = this.machine.spawnGroup()
    return { run: await this.verbs.startRun(run, { process, group }), process, group }
  }

  /** Ends the open run of a task by itself, its command gone. */
  async end(id: string, exit_code = 0): Promise<Run> {
    const lease = await this.verbs.lease(`task:${id}`)
    if (lease?.group) this.machine.endGroup(lease.group)
    const run = await this.verbs.run((await this.verbs.task(id)).run_id!)
    return this.verbs.finishRun(run, { exit_code })
  }

  /** Starts tasks one after the other, each ended before the next, until none is left. */
  async order(max = 50): Promise<string[]> {
    const ids: string[] = []
    while (ids.length < max) {
      const id = await this.next()
      if (id === undefined) break
      ids.push(id)
      await this.end(id)
    }
    return ids
  }

  /** What is written down twice about the queue must agree. */
  check(): Promise<void> {
    return this.store.read((view) => checkQueue(lookInto(view), this.used))
  }
}

export type QueueTest = (name: string, body: (scene: QueueScene) => Promise<void>) => void

/** A test on a scene of its own; at its end all that the queue keeps is worked out once more. */
export function queueTests(begin: Begin): QueueTest {
  return (name, body) => {
    test(name, async () => {
      const scene = new QueueScene(begin())
      await scene.verbs.register('d')
      await body(scene)
      await expect(scene.check()).resolves.toBeUndefined()
    })
  }
}
