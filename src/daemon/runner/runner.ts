import { existsSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Caller } from '../../core/caller.ts'
import { shortLine } from '../../core/quote.ts'
import { isDecided, isRefusal } from '../../core/refusal.ts'
import type { ShownRun } from '../../operations/runs.ts'
import { MARK } from '../../machine/group.ts'
import { writePrivate } from '../../machine/private_file.ts'
import { ownProcess } from '../../machine/process.ts'
import { type Command, type Exit, startCommand, whyNotStartable } from './command.ts'
import { OutputLog } from './output_log.ts'
import { keepRenewing } from '../../reach/renewing.ts'
import { makeRunFolder, RunNotes } from './run_folder.ts'
import { step } from '../../machine/test_build.ts'
import { RunAsking } from './asking.ts'
import { runBrief } from './brief.ts'
import type { RunSpec } from './spec.ts'
import type { AskTrees } from '../worktrees/entered.ts'
import { RunTree } from '../worktrees/run_tree.ts'

/** How a runner exits: its own outcome, not that of the command. */
export const EXITS = { told: 0, badSpec: 2, refused: 5, unanswered: 75 } as const

/** When the ask is on its way there is time for what need not be done before. */
const MEANWHILE_MS = 2

const CLOSE_MS = 1_000
const PAUSE_MS = 1_000
const TEARDOWN_MS = 60_000

/** Of the last words of a command. */
const SAID = 4_000

const NEVER_RAN: Exit = { code: null, signal: null }

/**
 * One run, from the gate to the report. The command begins only after the store has recorded that
 * it does, and the run ends only when nothing of the command is left.
 */
export class Runner {
  private readonly asking: RunAsking
  private readonly notes: RunNotes
  private command: Command | undefined
  private stopping: Promise<boolean> | undefined
  private reason: string | null = null
  private lost = false
  /** The end of what the command printed. */
  private said: Buffer = Buffer.alloc(0)
  private readonly tree: RunTree | undefined
  private endRenewing: (() => void) | undefined

  constructor(private readonly spec: RunSpec) {
    const { agent, lock, fence, place } = spec
    const under = { lock, fence }
    const caller: Caller = { agent, given: true, process: ownProcess(), admin: false, under }
    this.asking = new RunAsking({ HOME: process.env['HOME'], ...place }, caller, spec.ttl_ms)
    this.notes = new RunNotes(spec)
    const ask: AskTrees = (name, input) => this.asking.insist(name, input)
    if (spec.worktree) this.tree = new RunTree(ask, spec.worktree)
  }

  /** Sees the run through to its end, whatever that is, and answers with an exit code. */
  async run(): Promise<number> {
    step('runner:spec')
    try {
      const command = await this.prepare()
      return typeof command === 'string' ? await this.fail(command) : await this.start(command)
    } finally {
      this.endRenewing?.()
      // A store that does not answer cannot be closed either.
      await Promise.race([this.asking.close(), pause(CLOSE_MS)])
    }
  }

  /** Ends the run before its command has ended. */
  stop(reason: string, term_ms = this.spec.grace_ms): void {
    this.reason ??= reason
    // Before the gate is open there is nothing to stop, and afterwards it will stay closed.
    if (this.notes.hasBegun) this.stopping ??= this.command?.stop(term_ms)
  }

  /** The command behind its gate, or a sentence that says why it cannot be one. */
  private async prepare(): Promise<Command | string> {
    const { folder, env, prompt_file, prompt, grace_ms } = this.spec
    let { argv, cwd } = this.spec
    try {
      this.notes.made = makeRunFolder(folder)
      if (this.tree) {
        // That may take longer than a claim lives.
        this.endRenewing = this.renew()
        cwd = await this.tree.make()
      }
      const brief = this.spec.brief ? runBrief(this.spec, this.tree?.made) : ''
      if (this.spec.stdin !== null) this.spec.stdin += brief
      else if (prompt_file !== null) {
        const name = basename(prompt_file)
        writePrivate(dirname(prompt_file), name, prompt + brief, { synced: false })
      }
      // As an argument it is the last one.
      else argv = [...argv.slice(0, -1), argv.at(-1)! + brief]
      const why = whyNotStartable(argv, env, cwd)
      if (why !== undefined) return why
      argv = this.tree?.commandOf(argv) ?? argv
      return await startCommand({ argv, cwd, env, stdio: 'captured', grace_ms })
    } catch (error) {
      return (error as Error).message
    }
  }

  /** Tells the store that the command could not begin. */
  private fail(why: string): Promise<number> {
    this.reason = `could not start: ${why}`
    return this.finish(NEVER_RAN)
  }

  private async start(command: Command): Promise<number> {
    this.command = command
    step('runner:gated')
    const { run_id: id, fence, ttl_ms } = this.spec
    const input = { id, fence, process: ownProcess(), group: command.group }
    const meanwhile = setTimeout(() => this.notes.begin(), MEANWHILE_MS)
    try {
      await this.asking.insist('run.start', input, (ttl_ms * 2) / 3)
    } catch (error) {
      return await this.neverStarted(command, error)
    } finally {
      clearTimeout(meanwhile)
    }
    step('runner:started')
    this.endRenewing ??= this.renew()
    const exit = await this.supervise(command)
    step('runner:exited')
    if (exit.code === 0 && !this.lost && this.spec.commits) await this.commit()
    // What could not be saved now is saved by a keeper.
    await this.tree?.leave().catch(() => undefined)
    step('runner:left')
    return this.finish(exit)
  }

  /** What the command left uncommitted, with its last words as the message. */
  private async commit(): Promise<void> {
    const { task_id, agent, title } = this.spec
    const summary = plainText(this.said)
    // What cannot be committed is salvaged, and whoever lands the task is told of it.
    await this.tree?.commit({ task_id, agent, title, summary }).catch(() => undefined)
  }

  /** Its gate never opens, so nothing has run. */
  private async neverStarted(command: Command, error: unknown): Promise<number> {
    await command.stop(0)
    command.done()
    const reason = `not started: ${(error as Error).message}`
    const refused = isDecided(error)
    const run = refused ? await this.truth() : undefined
    this.notes.end(run, NEVER_RAN, reason)
    return refused ? EXITS.refused : EXITS.unanswered
  }

  /** When the lease is lost, the command has to be gone before the rest of the TTL is over. */
  private renew(): () => void {
    const { lock: name, fence, ttl_ms, grace_ms } = this.spec
    return keepRenewing({
      ttl_ms,
      renew: async () => {
        await this.asking.ask('lock.renew', { name, fence })
        this.tree?.tell()
      },
      lose: (why, over) => {
        const term_ms = over ? grace_ms : Math.min(grace_ms, ttl_ms / 6)
        this.lost ||= this.reason === null
        this.stop(`lost the lease: ${why}`, term_ms)
      },
    })
  }

  /** Opens the gate, and returns when nothing of the command is left. */
  private async supervise(command: Command): Promise<Exit> {
    // Told to stop in time: the gate stays closed.
    if (this.reason !== null) {
      await this.clear(command)
      return NEVER_RAN
    }
    command.go()
    this.notes.write({ pid: command.group.pid, started_at: new Date().toISOString() })
    step('runner:running')
    const log = new OutputLog(this.spec.folder, this.spec.log_bytes_max)
    const watchdog = new Watchdog(this.spec, (reason) => this.stop(reason))
    const drained = command.talk(this.spec.stdin ?? '', (said, isOut) => {
      watchdog.hear()
      log.write(said)
      if (isOut) this.said = Buffer.concat([this.said, said]).subarray(-SAID)
    })
    const exit = await command.exited
    watchdog.end()
    await this.clear(command)
    await drained()
    await this.tearDown(command, log)
    log.close()
    return exit
  }

  /** Still under the lease, with what was lent: it carries the mark of the command. */
  private async tearDown({ group }: Command, log: OutputLog): Promise<void> {
    const asked = this.tree?.teardown
    if (!asked || this.lost) return
    const env = { ...this.spec.env, [MARK]: group.mark }
    try {
      const command = await startCommand({ ...asked, env, stdio: 'captured', grace_ms: 0 })
      const drained = command.talk('', (said) => log.write(said))
      command.go()
      await Promise.race([command.exited, pause(TEARDOWN_MS)])
      await this.clear(command)
      await drained()
    } catch (error) {
      log.write(Buffer.from(`leasehold: teardown failed: ${(error as Error).message}\n`))
    }
  }

  /** Also what the command left behind goes: TERM, grace, KILL, for as long as it takes. */
  private async clear(command: Command): Promise<void> {
    let gone = await (command === this.command && this.stopping ? this.stopping : command.stop())
    while (!gone) {
      await pause(PAUSE_MS)
      gone = await command.stop(0)
    }
    command.done()
  }

  /** Reports the end until it is heard; a refusal means that the store has settled it already. */
  private async finish(exit: Exit): Promise<number> {
    const { run_id: id, fence } = this.spec
    const reason = this.reason && plain(this.reason)
    const { lost } = this
    const input = { id, fence, exit_code: exit.code, signal: exit.signal, reason, lost }
    for (;;) {
      try {
        const run = await this.insist('run.finish', input)
        step('runner:told')
        this.notes.end(run, exit, reason)
        return EXITS.told
      } catch (error) {
        const run = await this.truth()
        if (!isRefusal(error, 'illegal_move') || !this.command || run?.ended_at) {
          this.notes.end(run, exit, reason ?? run?.outcome ?? String(error))
          return EXITS.told
        }
      }
      // Something of the command was seen after we thought it was gone.
      await pause(PAUSE_MS)
      await this.command.stop()
    }
  }

  /** What the store says of this run; undefined when it knows nothing of it. */
  private truth(): Promise<ShownRun | undefined> {
    return this.insist('run.get', { id: this.spec.run_id }).catch(() => undefined)
  }

  /** For as long as it takes; but if somebody removed the state, nobody is left to be told. */
  private insist(name: 'run.finish' | 'run.get', input: Record<string, unknown>) {
    const { made } = this.notes
    const goesOn = () => !made || existsSync(this.spec.folder)
    return this.asking.insist(name, input, Number.POSITIVE_INFINITY, goesOn)
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const REASON_MAX = 500

/** What an agent prints at its end is its summary; only lines of text of it. */
const plainText = (said: Buffer) =>
  stripVTControlCharacters(said.toString())
    .replaceAll(/[^\P{Cc}\n]|\uFFFD/gu, '')
    .trim()

const plain = (text: string) => shortLine(text, REASON_MAX)

/** Ends a command that takes too long, or says nothing for too long. */
class Watchdog {
  private readonly silence_ms: number | null
  private readonly limit: NodeJS.Timeout | undefined
  private quiet: NodeJS.Timeout | undefined
  private heard = performance.now()

  constructor(
    bounds: { time_limit_ms: number | null; silence_ms: number | null },
    private readonly stop: (reason: string) => void,
  ) {
    const { time_limit_ms, silence_ms } = bounds
    this.silence_ms = silence_ms
    if (time_limit_ms !== null) {
      this.limit = setTimeout(() => stop(`time limit of ${time_limit_ms / 1000} s`), time_limit_ms)
    }
    this.listen()
  }

  /** The command said something. */
  hear(): void {
    this.heard = performance.now()
  }

  end(): void {
    clearTimeout(this.limit)
    clearTimeout(this.quiet)
  }

  /** Looks again when the silence could be too long; a timer per chunk would cost more. */
  private listen(): void {
    if (this.silence_ms === null) return
    const left_ms = this.heard + this.silence_ms - performance.now()
    if (left_ms > 0) this.quiet = setTimeout(() => this.listen(), left_ms)
    else this.stop(`silent for ${this.silence_ms / 1000} s`)
  }
}
