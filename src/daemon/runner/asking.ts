import type { Caller } from '../../core/caller.ts'
import { isDecided, isRefusal, Refusal } from '../../core/refusal.ts'
import type { ShownRun } from '../../operations/runs.ts'
import { stateFolder } from '../../machine/place.ts'
import { ownProcess } from '../../machine/process.ts'
import { findDaemon } from '../../reach/server_file.ts'
import { Unanswered } from '../../reach/silence.ts'
import { askBare } from '../../reach/wire.ts'

const PAUSE_MS = 50
const PAUSE_MS_MAX = 5_000

type Asked = 'run.start' | 'run.finish' | 'run.get' | 'lock.renew'

/** Asks the daemon if one answers, else the store itself, as the agent of one run. */
export class Asking {
  private readonly env: NodeJS.ProcessEnv
  private readonly caller: Caller
  private readonly ttl_ms: number
  private direct: ReturnType<typeof import('./direct.ts').openDirect> | undefined
  private asks = 0

  constructor(env: NodeJS.ProcessEnv, caller: Caller, ttl_ms: number) {
    this.env = env
    this.caller = caller
    this.ttl_ms = ttl_ms
  }

  /** One try. Under the same request id it takes effect once, whoever is asked. */
  async ask(name: Asked, input: Record<string, unknown>): Promise<ShownRun> {
    const { env } = this
    // Only an admin may say what is to be stopped, and this login is one.
    const caller = { ...this.caller, admin: name === 'run.start' }
    const daemon = findDaemon(env, await this.folder())
    if (daemon) {
      try {
        return (await askBare(daemon, name, input, caller, this.ttl_ms)) as ShownRun
      } catch (error) {
        if (!(error instanceof Unanswered) && !isRefusal(error, 'internal')) throw error
      }
    }
    this.direct ??= (await import('./direct.ts')).openDirect(env, '/')
    return (await this.direct.ask(name, input, caller)) as ShownRun
  }

  /**
   * Asks until there is an answer or a refusal that is decided, which it throws; after
   * `patience_ms` it throws what went wrong last. Anything else may pass: `internal` too, for what
   * broke in a daemon (no descriptor left, say) need not break in the next one.
   */
  async insist(
    name: Asked,
    input: Record<string, unknown>,
    patience_ms = Number.POSITIVE_INFINITY,
  ): Promise<ShownRun> {
    const until = performance.now() + patience_ms
    const asked = name === 'run.get' ? input : { ...input, request_id: this.nextId() }
    for (let pause_ms = PAUSE_MS; ; pause_ms = Math.min(pause_ms * 2, PAUSE_MS_MAX)) {
      try {
        return await within(this.ask(name, asked), until - performance.now())
      } catch (error) {
        const jittered_ms = pause_ms * (0.5 + Math.random())
        if (isDecided(error) || performance.now() + jittered_ms > until) throw error
        await new Promise((resolve) => void setTimeout(resolve, jittered_ms))
      }
    }
  }

  /** Where a daemon would say that it is. Only a store elsewhere takes more than a look to find. */
  private async folder(): Promise<string> {
    if (!this.env['LEASEHOLD_STORE']) return stateFolder(this.env, '/')
    return (await import('./direct.ts')).folderIn(this.env, '/')
  }

  /** Ids are remembered per agent, which is of this run alone; no other process makes this one. */
  private nextId(): string {
    const { pid, start } = ownProcess()
    this.asks += 1
    return `${pid}-${start}-${this.asks}`
  }

  async close(): Promise<void> {
    await this.direct?.close()
  }
}

/** A store that does not answer must not keep us beyond our time. */
async function within<T>(asked: Promise<T>, left_ms: number): Promise<T> {
  if (left_ms === Number.POSITIVE_INFINITY) return asked
  let late: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const refusal = new Refusal('unavailable', 'The store did not answer in time')
    late = setTimeout(() => reject(refusal), Math.max(0, left_ms))
  })
  return Promise.race([asked, tooLate]).finally(() => clearTimeout(late))
}
