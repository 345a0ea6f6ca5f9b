import { setTimeout } from 'node:timers/promises'
import pc from 'picocolors'
import { isMomentary, isRefusal, type Refusal } from '../../../core/refusal.ts'
import { visible } from '../../unseen.ts'
import { watchChanges } from '../top/changes.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'
import { underLock } from './folder_lock.ts'
import type { Synced, SyncPlan } from './folder.ts'
import { linesOf } from './report.ts'
import { watchFolder } from './watch.ts'
import { io } from '../../io.ts'

const RETRY_MS = 1_000

/** Syncs what changes until somebody ends it. A lock that was lost is taken again. */
export async function watchUntilEnded(
  context: Context,
  plan: Omit<SyncPlan, 'call'>,
  allowDeletions: boolean,
): Promise<void> {
  const ending = new AbortController()
  // Once: a second signal ends the process at once.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => ending.abort())
  }
  const teller = new Teller(context.json, plan.dir)
  while (!ending.signal.aborted) {
    try {
      await underLock(context, plan.dir, async (call, lost) => {
        const signal = AbortSignal.any([ending.signal, lost])
        await watchFolder({
          plan: { ...plan, call },
          allowDeletions,
          say: (synced) => teller.say(synced),
          warn: (refusal) => teller.warn(refusal),
          listen: (changed) => watchChanges(context, changed, isOfNotes),
          signal,
        })
        if (!ending.signal.aborted) throw lost.reason
      })
    } catch (error) {
      const passes = isMomentary(error) || isRefusal(error, 'lease_expired')
      if (!passes || !teller.hasSaid) throw error
      teller.warn(error)
      await setTimeout(RETRY_MS, undefined, { signal: ending.signal }).catch(() => undefined)
    }
  }
}

/** Not of what is done behind notes: those say nothing new. */
const isOfNotes = (type: string) =>
  type.startsWith('memory.') && type !== 'memory.embedded' && type !== 'memory.retried'

/** Tells what was done, once: what is skipped is skipped in every sync. */
class Teller {
  hasSaid = false
  private skipped = new Set<string>()
  private warned = ''

  constructor(
    private readonly json: boolean,
    private readonly dir: string,
  ) {}

  say(synced: Synced): void {
    this.warned = ''
    const key = ({ path, why }: Synced['skipped'][number]) => `${path}\n${why}`
    const news = { ...synced, skipped: synced.skipped.filter((e) => !this.skipped.has(key(e))) }
    this.skipped = new Set(synced.skipped.map(key))
    const hasNews = Object.values(news).some((each: unknown[]) => each.length > 0)
    if (this.json && (hasNews || !this.hasSaid)) print(JSON.stringify(news))
    if (!this.json && hasNews) print(linesOf(news))
    if (!this.json && !this.hasSaid) print(pc.dim(`watching ${visible(this.dir)}: Ctrl-C ends it`))
    this.hasSaid = true
  }

  warn({ message, next }: Refusal): void {
    if (message === this.warned) return
    this.warned = message
    io().stderr.write(`leasehold: ${visible(message)}\n  next: ${next} It is tried again.\n`)
  }
}
