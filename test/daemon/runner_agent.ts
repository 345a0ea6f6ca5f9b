import type { Queued } from '../../src/core/queue/rows.ts'
import type { Run, Task } from '../../src/core/schema/task.ts'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { dispatchNext, getRun, registerDispatcher } from '../../src/core/queue/dispatch.ts'
import { enqueueTask } from '../../src/core/queue/queue.ts'
import type { View } from '../../src/core/view.ts'
import { readMeta, type RunMeta } from '../../src/daemon/runner/run_folder.ts'
import type { RunSpec } from '../../src/daemon/runner/spec.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { host, ownProcess } from '../../src/machine/process.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { callerOf } from '../support/helpers.ts'
import { type Running, sandbox, type Sandbox, stateOf, until } from '../support/processes.ts'
import { runFolder } from '../../src/machine/run_output.ts'

const RUNNER = fileURLToPath(new URL('../../dist/test/runner.cjs', import.meta.url))
const DISPATCHER = `dispatcher:${host}`
const PROJECT = 'web'

/** A run that was claimed, as a dispatcher hands it to a runner. */
export interface Claimed {
  task: Task
  run: Run
  fence: number
}

/** A store with one dispatcher, which is this very process, and the runners it starts. */
export class Runners {
  readonly store: Store

  constructor(readonly place: Sandbox) {
    this.store = openStore(placeOf(this.at, place.folder))
  }

  get at(): { LEASEHOLD_DIR: string } {
    return { LEASEHOLD_DIR: this.place.state }
  }

  /**
   * Enqueues a task and claims it, as a dispatcher with a free slot does; in one step, so that a
   * daemon that serves no project does not put it aside in between.
   */
  async claim(queue: Partial<Queued> = {}, ttl_ms = 60_000): Promise<Claimed> {
    const asked = { agent_command: null, time_limit_ms: null, retries: 0, failed: 0, lost: 0 }
    const fields = { body: 'Do it', user: 'ada', priority: 5, group: null, labels: [] }
    const rest = { depends_on: [], assigned_to: null, metadata: {}, title: 'Work' }
    return this.store.write((view) => {
      const task = { ...fields, ...rest, project: PROJECT, queue: { ...asked, ...queue } }
      enqueueTask(view, task, callerOf('ada'))
      return nextOf(view, ttl_ms)
    })
  }

  /** Claims whatever is next in the queue. */
  claimNext(ttl_ms = 60_000): Promise<Claimed> {
    return this.store.write((view) => nextOf(view, ttl_ms))
  }

  /** What a dispatcher tells a runner; `body` is a script for the shell. */
  spec({ task, run, fence }: Claimed, body: string, more: Partial<RunSpec> = {}): RunSpec {
    const { PATH, LEASEHOLD_TEST } = this.place.env
    return {
      run_id: run.id,
      task_id: task.id,
      fence,
      agent: run.agent,
      lock: `task:${task.id}`,
      user: task.user,
      project: task.project,
      title: task.title,
      ttl_ms: 60_000,
      grace_ms: 500,
      folder: runFolder(this.place.state, run.id),
      argv: ['/bin/sh', '-c', body],
      cwd: this.place.folder,
      env: { PATH: PATH!, LEASEHOLD_TEST: LEASEHOLD_TEST!, LEASEHOLD_RUN: run.id },
      stdin: null,
      prompt_file: null,
      prompt: task.body,
      time_limit_ms: null,
      silence_ms: null,
      log_bytes_max: 100_000,
      place: this.at,
      worktree: null,
      brief: false,
      commits: false,
      check: null,
      ...more,
    }
  }

  start(spec: RunSpec | string, env: Record<string, string> = {}): Running {
    const input = typeof spec === 'string' ? spec : JSON.stringify(spec)
    return this.place.start([], { program: [process.execPath, RUNNER], input, env })
  }

  /** Starts a runner that stops itself at a step, and waits until it has. */
  async stoppedAt(step: string, spec: RunSpec, env: Record<string, string> = {}) {
    const running = this.start(spec, { LEASEHOLD_STOP_AT: step, ...env })
    await until(`it stops at ${step}`, () => stateOf(running.pid) === 'T')
    return running
  }

  /** Claims, runs to the end, and says what came of it. */
  async through(body: string, more: Partial<RunSpec> = {}, queue: Partial<Queued> = {}) {
    const claimed = await this.claim(queue)
    const spec = this.spec(claimed, body, more)
    expect(await this.start(spec).ended).toMatchObject({ code: 0, out: '', err: '' })
    return { ...(await this.after(claimed)), meta: this.meta(spec), spec }
  }

  /** Run and task as the store has them now. */
  after({ run, task }: Claimed): Promise<{ run: Run; task: Task }> {
    return this.store.read((view) => ({
      run: getRun(view, run.id),
      task: view.get('task', task.id)!,
    }))
  }

  meta(spec: RunSpec): RunMeta | undefined {
    return readMeta(spec.folder)
  }

  output(spec: RunSpec): string {
    const path = `${spec.folder}/output.log`
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** The pid that a command wrote into a file of the sandbox. */
  async pidIn(name: string): Promise<number> {
    const path = this.place.path(name)
    return until(name, () => existsSync(path) && Number(readFileSync(path, 'utf8').trim()))
  }
}

function nextOf(view: View, ttl_ms: number): Claimed {
  const { task, run, lease } = dispatchNext(view, {
    dispatcher: DISPATCHER,
    ttl_ms,
    process: ownProcess(),
    agentFor: () => 'sh',
    token_hash: '0'.repeat(64),
  })!
  return { task, run, fence: lease.fence }
}

/** A store with a dispatcher for the test that runs now. */
export async function runners(place = sandbox()): Promise<Runners> {
  const made = new Runners(place)
  await made.store.write((view) => {
    const slots = { slots_max: 4, projects: [PROJECT], started_at: view.at }
    registerDispatcher(view, { id: DISPATCHER, host, pid: process.pid, ...slots })
  })
  onTestFinished(() => made.store.close())
  return made
}

/** Nothing that a test starts outlives it by more, even if the test itself is killed. */
const SECONDS_MAX = 60

/** Deaf to everything but KILL, in a session of its own; its pid is in the file `deaf`. */
export const DEAF = `setsid sh -c 'trap "" TERM INT HUP
  echo $$ > deaf; exec sleep ${SECONDS_MAX}' &
  while [ ! -s deaf ]; do sleep 0.02; done`

/** Long, but not for ever; a trap of the shell is heard in between. */
export const FOREVER = `n=0; while [ $n -lt ${SECONDS_MAX * 5} ]; do n=$((n + 1)); sleep 0.2; done`
