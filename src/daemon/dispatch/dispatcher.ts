import type { Task } from '../../core/schema/task.ts'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { bodyOf } from '../../core/tasks/body.ts'
import { returnedNote } from '../../core/landing/turn.ts'
import type { Claim } from '../../core/tasks/claim.ts'
import { type Event, factsOf, isEnding } from '../../core/event.ts'
import {
  abandonRun,
  dispatchAll,
  finishRun,
  registerDispatcher,
} from '../../core/queue/dispatch.ts'
import { shortLine } from '../../core/quote.ts'
import { applyMemorySettings } from '../../core/memory/settings.ts'
import { offerResources } from '../../core/queue/resource.ts'
import { applySettings } from '../../core/queue/settings.ts'
import { persist } from '../../reach/patience.ts'
import { sha256 } from '../../machine/digest.ts'
import { isRefusal } from '../../core/refusal.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import { ownProcess } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { waitingText } from '../config/approval.ts'
import { type Config, readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { agentNameFor, dispatcherOn, planOf } from './launch.ts'
import { Elected } from '../elected.ts'
import { Role } from '../role.ts'
import { RUNNER_MS, settleFolders, settleRun } from './run_care.ts'
import { TreeCare } from './tree_care.ts'
import { memorySettingsOf, offersIn, sourceOn, queueSettingsOf } from '../config/shared_settings.ts'
import { slackOf, startRunner } from './start_runner.ts'
import { TrustWatch } from './trust.ts'
import { step } from '../../machine/test_build.ts'
import { WorkRounds } from '../turns.ts'

export interface DispatcherOptions {
  /** The store; `config.json` and `runs/` are in its folder. */
  place: Place
  env: NodeJS.ProcessEnv
  /** Where agents come in. */
  url: () => string
  /** Told what a person may want to know: a configuration that was refused, say. */
  say: (sentence: string) => void
}

const RETRY_MS = 1_000
/** So many are claimed and started at once at most. */
const STARTS_MAX = 32
/** After trouble of the store it tries again by itself, less and less often. */
const FILL_AGAIN_MS = 200
const FILL_AGAIN_MS_MAX = 2_000

/**
 * Starts agents on enqueued tasks, one runner per run, as slots and limits allow. It looks when
 * something may start that could not before. It may die at any time: what it claimed and had not
 * started is free again at once, and what runs goes on under its runner and is counted again by the
 * next one.
 */
export class Dispatcher {
  private readonly elected: Elected
  private readonly host: string
  private readonly id: string
  private readonly folder: string
  private readonly trust: TrustWatch
  private readonly trees: TreeCare
  private config: Config
  private stopWatching = () => {}
  private forget: (() => void)[] = []
  private stopping = new AbortController()
  private fill_again_ms = FILL_AGAIN_MS
  private active = false
  private readonly rounds = new WorkRounds(
    () => this.active,
    () => this.fill(),
  )
  private readonly settling = new Set<Promise<void>>()

  constructor(
    private readonly store: Store,
    private readonly options: DispatcherOptions,
  ) {
    this.host = store.host()
    this.id = dispatcherOn(this.host)
    const role = new Role(store, this.id, 'dispatcher')
    const duty = { begin: () => this.begin(), end: () => this.end() }
    this.elected = new Elected(store, role, duty, options.say)
    this.folder = folderOf(options.place)
    this.trust = new TrustWatch(store, options.env, options.say)
    this.config = readConfig(this.folder, options.env)
    this.trees = new TreeCare(store, { ...options, config: () => this.config })
  }

  /** Takes the role of this host's dispatcher, or refuses with `held` while another has it. */
  start(): Promise<void> {
    return this.elected.start()
  }

  /** In a daemon: dispatches as soon as no other process does so on this host. */
  startOrStandBy(): Promise<void> {
    return this.elected.startOrStandBy()
  }

  /** Starts nothing more. Runs go on: the next dispatcher counts them as its own. */
  stop(): Promise<void> {
    return this.elected.stop()
  }

  private async begin(): Promise<void> {
    const { env, say } = this.options
    const { folder } = this
    this.active = true
    this.stopping = new AbortController()
    this.stopWatching = watchConfig(folder, env, {
      changed: (config) => void this.reloadPatiently(config),
      failed: (refusal) => say(`kept the former configuration: ${refusal.message}`),
    })
    this.forget = [
      this.store.onCommit((events) => this.hear(events)),
      this.store.onOpening(() => this.rounds.wake()),
    ]
    await this.reload(readConfig(folder, env))
    this.settle('old runs', () => settleFolders(this.store, folder))
    this.trees.begin()
  }

  private async end(): Promise<void> {
    this.active = false
    this.stopWatching()
    for (const forget of this.forget) forget()
    this.stopping.abort()
    await Promise.all([this.rounds.over(), this.trees.end(), ...this.settling])
  }

  /** A store in trouble gets over it, and the new configuration counts then. */
  private async reloadPatiently(config: Config): Promise<void> {
    try {
      await this.reload(config)
      this.options.say('the new configuration counts')
    } catch (error) {
      this.options.say(`the new configuration has to wait: ${(error as Error).message}`)
      const again = () => this.active && this.config === config && void this.reloadPatiently(config)
      setTimeout(again, RETRY_MS).unref()
    }
  }

  private async reload(config: Config): Promise<void> {
    this.config = config
    if (config.waiting.length > 0) this.options.say(waitingText(config.waiting))
    const dispatcher = {
      id: this.id,
      host: this.host,
      pid: process.pid,
      slots_max: config.slots.max,
      projects: Object.keys(config.projects),
      started_at: new Date().toISOString(),
    }
    const source = sourceOn(this.store)
    await this.store.write((view) => {
      applySettings(view, source, queueSettingsOf(config))
      applyMemorySettings(view, source, memorySettingsOf(config))
      offerResources(view, this.host, offersIn(config))
      registerDispatcher(view, dispatcher)
    })
    this.rounds.wake()
  }

  private hear(events: Event[]): void {
    for (const event of events) {
      const { type, task } = event
      if (task === null) continue
      // Its runner may not have been there to tell.
      if (isEnding(event)) this.settleTask(task)
      // Its runner wrote that down itself, unless it died or had no room.
      if (type === 'run.ended') setTimeout(() => this.settleTask(task), RUNNER_MS).unref()
    }
  }

  private settleTask(task: string): void {
    // The store of one that has ended may be gone already.
    if (!this.active) return
    this.settle(`the runs of task ${task}`, () => settleRun(this.store, this.folder, task))
    this.trees.look()
  }

  /** A folder that cannot be written (a full disk, say) is settled as soon as it can be. */
  private settle(what: string, settling: () => Promise<void>, isAgain = false): void {
    if (!this.active) return
    const under_way = settling().catch((error: Error) => {
      if (!isAgain) this.options.say(`${what} could not be settled yet: ${error.message}`)
      setTimeout(() => this.settle(what, settling, true), RETRY_MS).unref()
    })
    this.settling.add(under_way)
    void under_way.then(() => this.settling.delete(under_way))
  }

  /** Fills free slots. A store in trouble may get over it without any event that would tell us. */
  private async fill(): Promise<void> {
    try {
      while (this.active && (await this.startSome()));
      this.fill_again_ms = FILL_AGAIN_MS
    } catch (error) {
      this.options.say(`could not dispatch: ${(error as Error).message}`)
      this.rounds.wakeIn(this.fill_again_ms)
      this.fill_again_ms = Math.min(this.fill_again_ms * 2, FILL_AGAIN_MS_MAX)
    }
  }

  /** Claims the tasks whose turn it is, then starts their runners. False when there are none. */
  private async startSome(): Promise<boolean> {
    // To ask is to write, and on a shared store every commit of others makes it look.
    if (Object.keys(this.config.projects).length === 0) return false
    const count = Math.min(this.config.slots.max, STARTS_MAX)
    const secrets = Array.from({ length: count }, () => randomBytes(32).toString('base64url'))
    step('dispatcher:idle')
    const found = await this.store.write((view) => {
      const claims = dispatchAll(view, {
        dispatcher: this.id,
        ttl_ms: this.config.runs.ttl_seconds * 1000,
        process: ownProcess(),
        agentFor: (task: Task) => agentNameFor(this.config, task),
        token_hashes: secrets.map(sha256),
        slack_ms: slackOf(this.config),
      })
      return claims.map((claim) => {
        return { claim, prompt: bodyOf(view, claim.task) + returnedNote(claim.task) }
      })
    })
    if (found.length > 0) step('dispatcher:claimed')
    for (const [i, each] of found.entries()) {
      try {
        await this.startOne(each, secrets[i]!)
      } catch (error) {
        await Promise.all(found.slice(i).map(({ claim }) => this.abandon(claim, false)))
        throw error
      }
    }
    return found.length > 0
  }

  /** Refuses `unavailable` where this host cannot start a process at all. */
  private async startOne(found: { claim: Claim; prompt: string }, secret: string): Promise<void> {
    const { claim } = found
    try {
      const { place, env, url } = this.options
      const { config } = this
      const runner = startRunner({ ...found, config, place, env, url: url(), secret })
      this.watch(claim, runner)
      const { agent, cwd } = planOf(this.config, claim.task)
      this.trust.look(agent, cwd)
    } catch (error) {
      if (isRefusal(error, 'unavailable')) throw error
      await this.giveUp(claim, error as Error)
    }
    step('dispatcher:spawned')
  }

  /** A runner that neither begins nor goes is ended when its claim is: it may be stopped. */
  private watch(claim: Claim, runner: ChildProcess): void {
    const { task, lease } = claim
    const forget = this.store.onCommit((events) => {
      const ended = events.some((event) => {
        const { fence } = factsOf(event)
        return event.task === task.id && isEnding(event) && fence === lease.fence
      })
      if (ended) setTimeout(() => runner.kill('SIGKILL'), RUNNER_MS).unref()
    })
    runner.once('exit', () => {
      forget()
      void this.abandon(claim, true).catch(() => undefined)
    })
  }

  /** No runner any more. If it had not begun, its task is not kept waiting for the end of a TTL. */
  private async abandon({ run, lease }: Claim, had_runner: boolean): Promise<void> {
    const ask = { id: run.id, fence: lease.fence, had_runner }
    const attempt = async () => {
      const begun = await this.store.read((view) => view.get('run', run.id)?.begun_at !== null)
      if (!begun) await this.store.write((view) => abandonRun(view, ask))
    }
    // Its lease names this process, which lives on: only its TTL would end it.
    await persist(attempt, lease.ttl_ms, undefined)
  }

  /** What cannot be started at all has failed, and says why. */
  private async giveUp({ run, lease }: Claim, error: Error): Promise<void> {
    const { id, agent } = run
    const reason = shortLine(`could not start: ${error.message}`, 500)
    const caller = { agent, given: true, process: ownProcess(), admin: false, under: null }
    const ended = { id, fence: lease.fence, exit_code: null, signal: null, reason }
    const attempt = () => this.store.write((view) => finishRun(view, ended, caller))
    await persist(attempt, lease.ttl_ms, this.stopping.signal)
  }
}
