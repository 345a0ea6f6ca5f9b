import { Refusal } from '../../core/refusal.ts'
import type { TextRow } from './driver.ts'

/** How often within `busy_timeout_ms` a writer in line looks at who has the lock. */
const LOOKS = 4
/** How long the server keeps a writer's place in the line; nobody loses it while others get on. */
export const LINE_MS = 60_000

interface Line {
  /** Who waits; its session in the server. */
  pid: string
  shown: string
  busy_timeout_ms: number
  /** Everybody who has the lock or waits for it: session, transaction, and whether it has it. */
  look: () => Promise<TextRow[]>
  /** Told when it is given up. */
  lose: () => void
}

/**
 * The answer to `begun`, which waits for the lock, or the reason why that is in vain. Nothing is
 * looked at before a while has passed: most get the lock at once.
 */
export async function inLine<T>(begun: Promise<T>, line: Line): Promise<T> {
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const inVain = new Promise<never>((_, reject) => {
    const look = watchOver(line)
    const giveUp = (error: unknown) => {
      // After the end, what a look still finds out concerns nobody.
      if (isOver) return
      line.lose()
      reject(error)
    }
    const wait = () => {
      if (isOver) return
      timer = setTimeout(() => void look().then(wait, giveUp), line.busy_timeout_ms / LOOKS)
    }
    wait()
  })
  try {
    return await Promise.race([begun, inVain])
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

/**
 * Looks on while a writer waits for the lock, and throws when waiting is in vain: one transaction
 * has had it for `busy_timeout_ms`, the server does not answer, or our place is lost. Many who take
 * it in turn, however slow, are no reason: our turn comes.
 */
function watchOver(line: Line): () => Promise<void> {
  let seen: string | undefined
  let since_ms = 0
  let missing = 0
  return async () => {
    const found = await line.look()
    const now_ms = performance.now()
    const holder = found.find(([, , has]) => has === 'true')?.join(' ')
    if (holder !== seen) since_ms = now_ms
    seen = holder
    const held_ms = holder === undefined ? 0 : now_ms - since_ms
    if (held_ms >= line.busy_timeout_ms) throw stuck(line.shown, held_ms)
    missing = found.some(([pid]) => pid === line.pid) ? 0 : missing + 1
    if (missing > 1) throw new Error('connection lost while waiting for the lock')
  }
}

function stuck(shown: string, held_ms: number): Refusal {
  const held_s = (held_ms / 1000).toFixed(1)
  return new Refusal(
    'unavailable',
    `${shown} is locked by one transaction that makes no progress for ${held_s} s`,
    { next: 'Try again. If it stays so, see who it is: SELECT * FROM pg_stat_activity' },
  )
}
