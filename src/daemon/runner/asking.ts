import type { Caller } from '../../core/caller.ts'
import { isDecided, isRefusal, Refusal } from '../../core/refusal.ts'
import type { ShownRun } from '../../operations/runs.ts'
import { ownProcess } from '../../machine/process.ts'
import { type ReachAsk, Unanswered } from '../../reach/ask.ts'
import { Reach } from '../../reach/reach.ts'
import { type Daemon, findDaemon } from '../../reach/server_file.ts'
import { askBriefly } from '../../reach/http.ts'
import { folderIn } from '../../stores/place.ts'

const PAUSE_MS = 50
const PAUSE_MS_MAX = 5_000

type Told = 'run.start' | 'run.finish' | 'run.get' | 'lock.renew'
type Asked = Told | 'worktree.enter' | 'worktree.record'

/** What only an admin may say, as this login is one: what is to be stopped, and what is on disk. */
const ADMINS: ReadonlySet<Asked> = new Set<Asked>([
  'run.start',
  'worktree.enter',
  'worktree.record',
])

/** Asks as the agent of one run, or as a keeper. */
export class RunAsking {
  private readonly reach: Reach<ReachAsk>
  private asks = 0

  constructor(
    env: NodeJS.ProcessEnv,
    private readonly caller: Caller,
    private readonly ttl_ms: number,
  ) {
    this.reach = new Reach({
      find: () => findDaemon(env, folderIn(env, '/')),
      send: askSound,
      open: async () => (await import('../../reach/direct.ts')).openDirect(env, '/'),
    })
  }

  /** One try. Under the same request id it takes effect once, be it asked here or there. */
  async ask(name: Asked, input: Record<string, unknown>): Promise<ShownRun> {
    const caller = { ...this.caller, admin: ADMINS.has(name) }
    const asked = { operation: { name }, input, caller, ttl_ms: this.ttl_ms }
    return (await this.reach.ask(asked)) as ShownRun
  }

  /**
   * Asks until there is an answer or a refusal that is decided, which it throws. After
   * `patience_ms`, or when nobody is left to be asked, it throws what went wrong last. Anything
   * else may pass: `internal` too, for what broke in a daemon (no descriptor left, say) need not
   * break in the next one.
   */
  async insist(
    name: Asked,
    input: Record<string, unknown>,
    patience_ms = Number.POSITIVE_INFINITY,
    goesOn: () => boolean = () => true,
  ): Promise<ShownRun> {
    const until = performance.now() + patience_ms
    // Ids are remembered per agent, which is of this run alone; no other process makes this one.
    const { pid, start } = ownProcess()
    const request_id = `${pid}-${start}-${(this.asks += 1)}`
    const asked = name === 'run.get' ? input : { ...input, request_id }
    for (let pause_ms = PAUSE_MS; ; pause_ms = Math.min(pause_ms * 2, PAUSE_MS_MAX)) {
      try {
        return await within(this.ask(name, asked), until - performance.now())
      } catch (error) {
        const jittered_ms = pause_ms * (0.5 + Math.random())
        const isOver = performance.now() + jittered_ms > until || !goesOn()
        if (isDecided(error) || isOver) throw error
        await new Promise((resolve) => void setTimeout(resolve, jittered_ms))
      }
    }
  }

  close(): Promise<void> {
    return this.reach.close()
  }
}

/** What broke in a daemon need not break here: the store is asked. */
function askSound(daemon: Daemon, asked: ReachAsk): Promise<unknown> {
  return askBriefly(daemon, asked).catch((error: Error) => {
    throw isRefusal(error, 'internal') ? new Unanswered(error.message) : error
  })
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
