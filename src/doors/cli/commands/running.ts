import { constants } from 'node:os'
import { lockOf } from '../../../core/locks/lease.ts'
import { isRefusal, Refusal } from '../../../core/refusal.ts'
import { type Command, type Exit, startCommand } from '../../../daemon/runner/command.ts'
import { keepRenewing } from '../../../reach/renewing.ts'
import { Watcher } from '../../../daemon/runner/watcher.ts'
import * as locks from '../../../operations/locks.ts'
import * as tasks from '../../../operations/tasks.ts'
import { ownProcess } from '../../../machine/process.ts'
import type { Context } from '../context.ts'
import { isBound } from '../family.ts'
import { durationOf } from '../values.ts'
import { io } from '../../io.ts'

const LOST = 5
const GRACE_MS = 10_000
/** What the command and those it left behind have between TERM and KILL. */
const STOP_MS = 2_000

export interface RunOptions {
  task?: string
  lock?: string
  ttl: string
  wait?: string
  claim?: boolean
}

/**
 * Holds a lock while a command runs, and answers with the exit code for both. With a token nobody
 * may name a group that the server is to stop. The lease then names our watcher instead of us: it
 * outlives us until it has stopped the command, and only then the lock is free.
 */
export async function run(context: Context, argv: string[], options: RunOptions): Promise<number> {
  const name = await lockFor(context, options)
  const watcher = context.env['LEASEHOLD_TOKEN'] ? new Watcher(STOP_MS) : undefined
  const lease = await take(context, name, options, watcher?.process)
  const held = new Held(context, lease)
  const env = held.environment(options)
  const ask = { argv, env, stdio: 'inherit', lets_go: true, grace_ms: STOP_MS, watcher } as const
  const command = await startCommand(ask)
  try {
    if (!watcher) await held.name(command)
  } catch (error) {
    // Its gate never opens, so nothing has run.
    await command.stop()
    command.done()
    throw error
  }
  const unhook = forwardSignals(command)
  command.go()
  held.keepRenewing(() => void command.stop((lease.ttl_seconds * 1000) / 6))
  const exit = await command.exited
  await command.stop(STOP_MS)
  unhook()
  const code = await held.finish(exit, options)
  // Not before: with the watcher the lease that names it would end.
  command.done()
  return code
}

async function lockFor(context: Context, options: RunOptions): Promise<string> {
  if ((options.task === undefined) === (options.lock === undefined)) {
    throw new Refusal('invalid', 'Say what to hold: either --task ID or --lock NAME', {
      next: 'leasehold run --lock build -- make',
    })
  }
  if (options.claim && options.task === undefined) {
    throw new Refusal('invalid', '--claim needs a task to claim', {
      next: 'leasehold run --task 42 --claim -- npm test',
    })
  }
  if (options.lock !== undefined) return options.lock
  const task = await context.call(tasks.get, { id: options.task })
  return lockOf(task.id)
}

/** Takes the lock for a process, this one by default, or says who has it and who could free it. */
async function take(
  context: Context,
  name: string,
  options: RunOptions,
  holder = ownProcess(),
): Promise<locks.ShownLease> {
  const ask = { ttl_seconds: durationOf(options.ttl, '--ttl'), process: holder }
  try {
    if (options.claim && options.wait === undefined) {
      const input = { id: options.task, ...ask }
      const { lease } = await context.call(tasks.claim, input)
      return lease!
    }
    const wait_seconds = options.wait === undefined ? 0 : durationOf(options.wait, '--wait')
    const input = { names: [name], wait_seconds, ...ask }
    const got = await context.call(locks.acquire, input)
    if (options.claim) await begin(context, got as locks.ShownLease, options.task)
    return got as locks.ShownLease
  } catch (error) {
    throw isRefusal(error, 'held') ? busy(context, error, name, options) : error
  }
}

/** A claim that had to wait: the lock is ours, now the task. Refused, the lock goes back. */
async function begin(context: Context, lease: locks.ShownLease, id: string | undefined) {
  const { name, fence } = lease
  try {
    const input = { id, status: 'in_progress', fence }
    await context.call(tasks.setStatus, input)
  } catch (error) {
    await context.call(locks.release, { name, fence })
    throw error
  }
}

function busy(context: Context, refusal: Refusal, name: string, options: RunOptions): Refusal {
  const { holder, pid } = refusal.details as { holder?: string; pid?: number }
  const what =
    options.task === undefined
      ? `Lock ${name} is already held`
      : `Task ${options.task} is already being processed`
  const who = pid === undefined ? ` by ${holder}, which names no process` : ` (PID: ${pid})`
  return new Refusal('held', `${what}${who}`, {
    next: `Wait for it (--wait 30s). ${
      isBound(context.family()) || context.caller.given
        ? 'Only a person can free it: ask your user.'
        : `This login can free it: leasehold lock force-release ${name}`
    }`,
    details: refusal.details,
  })
}

/** The lease of this run, from grant to release. */
class Held {
  private endRenewing: () => void = () => undefined
  private lost: string | undefined

  constructor(
    private readonly context: Context,
    private readonly lease: locks.ShownLease,
  ) {}

  private get proof() {
    return { name: this.lease.name, fence: this.lease.fence }
  }

  /** What the command may know. A defaulted id is narrowed: two terminals are not one agent. */
  environment(options: RunOptions): NodeJS.ProcessEnv {
    const { caller, env } = this.context
    const { name, fence } = this.lease
    return {
      ...env,
      LEASEHOLD_LOCK: name,
      LEASEHOLD_FENCE: String(fence),
      LEASEHOLD_AGENT: caller.given ? caller.agent : `${caller.agent}/run-${fence}`,
      ...(options.task !== undefined && { LEASEHOLD_TASK: options.task }),
    }
  }

  /** From here on the lock is free only when the command's group is gone. */
  async name(command: Command): Promise<void> {
    const input = { ...this.proof, group: command.group }
    // Only an admin may say what is to be stopped, and this login is one.
    const caller = { ...this.context.caller, admin: true }
    await this.context.call(locks.nameGroupOfLock, input, { caller })
  }

  /** When the lease is lost, the command is stopped while the rest of the TTL protects it. */
  keepRenewing(stop: () => void): void {
    const ttl_ms = this.lease.ttl_seconds * 1000
    this.endRenewing = keepRenewing({
      ttl_ms,
      renew: () => this.context.call(locks.renew, this.proof, { ttl_ms }),
      lose: (why) => {
        this.lost ??= why
        stop()
      },
    })
  }

  /** Gives the lock back. If another took it meanwhile, it stays taken: our lease was lost. */
  async finish(exit: Exit, options: RunOptions): Promise<number> {
    this.endRenewing()
    try {
      if (options.claim) await this.settle(exit, options.task!)
      else await this.context.call(locks.release, this.proof)
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error)
      // The lease is ours to the end of this process, and free with it: nothing was lost.
      if (isRefusal(error, 'unavailable')) warn(`not released: ${said}`)
      else this.lost ??= said
    }
    if (this.lost === undefined) return codeOf(exit)
    warn(`lost the lease on ${this.lease.name}: ${this.lost}`)
    return LOST
  }

  /** Exit 0 is done, anything else failed, unless the command moved the task itself. */
  private async settle(exit: Exit, id: string): Promise<void> {
    const task = await this.context.call(tasks.get, { id })
    if (task.status !== 'in_progress' || exit.signal) {
      await this.context.call(locks.release, this.proof)
      return
    }
    const status = exit.code === 0 ? 'done' : 'failed'
    await this.context.call(tasks.setStatus, { id, status, fence: this.lease.fence })
  }
}

const warn = (sentence: string) => io().stderr.write(`leasehold: ${sentence}\n`)

function codeOf({ code, signal }: Exit): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

/** What is meant for us is meant for the command; one that does not listen is ended in the end. */
function forwardSignals(command: Command): () => void {
  let killer: NodeJS.Timeout | undefined
  const forward = (name: NodeJS.Signals) => {
    command.signal(name)
    killer ??= setTimeout(() => command.signal('SIGKILL'), GRACE_MS)
  }
  for (const name of FORWARDED) process.on(name, forward)
  return () => {
    clearTimeout(killer)
    for (const name of FORWARDED) process.off(name, forward)
  }
}
