import { constants } from 'node:os'
import { lockOf } from '../../core/lease.ts'
import { Refusal } from '../../core/refusal.ts'
import { type Command, type Exit, startCommand } from '../../daemon/command.ts'
import { call } from '../../operations/call.ts'
import * as locks from '../../operations/locks.ts'
import * as tasks from '../../operations/tasks.ts'
import { ownProcess } from '../../stores/process.ts'
import type { Context } from './context.ts'
import { durationOf } from './values.ts'

const LOST = 5
const GRACE_MS = 10_000

export interface RunOptions {
  task?: string
  lock?: string
  ttl: string
  wait?: string
  claim?: boolean
}

/** Holds a lock while a command runs, and answers with the exit code for both. */
export async function run(context: Context, argv: string[], options: RunOptions): Promise<number> {
  const name = await lockFor(context, options)
  const lease = await take(context, name, options)
  const held = new Held(context, lease)
  const command = startCommand(argv, held.environment(options))
  try {
    await held.name(command)
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
  await command.stop()
  command.done()
  unhook()
  return held.finish(exit, options)
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
  const task = await call(context.store(), tasks.get, { id: options.task }, context.caller)
  return lockOf(task.id)
}

/** Takes the lock for this very process, or says who has it and who could free it. */
async function take(
  context: Context,
  name: string,
  options: RunOptions,
): Promise<locks.ShownLease> {
  const ask = {
    ttl_seconds: durationOf(options.ttl, '--ttl'),
    process: ownProcess(),
  }
  try {
    if (options.claim && options.task !== undefined) {
      const input = { id: options.task, ...ask }
      const { lease } = await call(context.store(), tasks.claim, input, context.caller)
      return lease!
    }
    const wait_seconds = options.wait === undefined ? 0 : durationOf(options.wait, '--wait')
    const input = { names: [name], wait_seconds, ...ask }
    return (await call(context.store(), locks.acquire, input, context.caller)) as locks.ShownLease
  } catch (error) {
    throw error instanceof Refusal && error.code === 'held' ? busy(error, name, options) : error
  }
}

function busy(refusal: Refusal, name: string, options: RunOptions): Refusal {
  const { holder, pid } = refusal.details as { holder?: string; pid?: number }
  const what =
    options.task === undefined
      ? `Lock ${name} is already held by ${holder}`
      : `Task ${options.task} is already being processed`
  const who = pid === undefined ? `by ${holder}, which names no process` : `PID: ${pid}`
  return new Refusal('held', `${what} (${who})`, {
    next: `Wait for it (--wait 30s). This login can free it: leasehold lock force-release ${name}`,
    details: refusal.details,
  })
}

/** The lease of this run, from grant to release. */
class Held {
  private readonly context: Context
  private readonly lease: locks.ShownLease
  private timer: NodeJS.Timeout | undefined
  private lost: string | undefined

  constructor(context: Context, lease: locks.ShownLease) {
    this.context = context
    this.lease = lease
  }

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
    const { caller } = this.context
    const input = { ...this.proof, group: command.group }
    await call(this.context.store(), locks.nameGroupOfLock, input, caller)
  }

  /**
   * Renews at a third of the TTL. When the lease is lost, or nothing was acknowledged for two
   * thirds of it, the command is stopped while the rest of the TTL still protects it.
   */
  keepRenewing(stop: () => void): void {
    const ttl_ms = this.lease.ttl_seconds * 1000
    let acknowledged = performance.now()
    const beat = async () => {
      const asked = performance.now()
      try {
        await call(this.context.store(), locks.renew, this.proof, this.context.caller)
        acknowledged = asked
      } catch (error) {
        const gone = error instanceof Refusal && error.code !== 'unavailable'
        if (gone) this.lost = error.message
        else if (performance.now() - acknowledged > (ttl_ms * 2) / 3) this.lost = String(error)
      }
      if (this.lost !== undefined) stop()
      else this.timer = setTimeout(() => void beat(), ttl_ms / 3)
    }
    this.timer = setTimeout(() => void beat(), ttl_ms / 3)
  }

  /** Gives the lock back. Whoever took it meanwhile keeps it: then the lease was lost. */
  async finish(exit: Exit, options: RunOptions): Promise<number> {
    clearTimeout(this.timer)
    try {
      if (options.claim) await this.settle(exit, options.task!)
      else await call(this.context.store(), locks.release, this.proof, this.context.caller)
    } catch (error) {
      this.lost ??= error instanceof Error ? error.message : String(error)
    }
    if (this.lost === undefined) return codeOf(exit)
    process.stderr.write(`leasehold: lost the lease on ${this.lease.name}: ${this.lost}\n`)
    return LOST
  }

  /** Exit 0 is done, anything else failed, unless the command moved the task itself. */
  private async settle(exit: Exit, id: string): Promise<void> {
    const store = this.context.store()
    const { caller } = this.context
    const task = await call(store, tasks.get, { id }, caller)
    if (task.status !== 'in_progress' || exit.signal) {
      await call(store, locks.release, this.proof, caller)
      return
    }
    const status = exit.code === 0 ? 'done' : 'failed'
    await call(store, tasks.setStatus, { id, status, fence: this.lease.fence }, caller)
  }
}

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
