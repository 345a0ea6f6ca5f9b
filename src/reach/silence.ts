import { isStopped } from '../machine/process.ts'
import { type ReachAsk, Unanswered } from './ask.ts'
import type { Daemon } from './server_file.ts'

/**
 * The one patience that all of our programs have with a daemon. One that is paused says nothing for
 * ever, and the store can be asked beside it under the same request id, so nobody waits for long:
 * a share of the TTL at stake, then there is time to ask the store before the lease is over.
 */
const SILENT_MS = 2_000
const TTL_SHARE = 1 / 8
/** Of a daemon that is at work: it may have to stop a command first, which takes its grace. */
const BUSY_MS = 20_000
const HEALTH_MS = 1_000
const LOOK_MS = 500

/** How long a daemon may be silent before it is given up, or asked whether it is there. */
export const patienceFor = (ttl_ms: number) => Math.min(SILENT_MS, ttl_ms * TTL_SHARE)

/**
 * What is at stake in a call: the TTL that it asks for, where it asks for one. One that is no TTL
 * is for the daemon to refuse, which takes it a moment.
 */
export function stakeIn(input: Record<string, unknown>): number {
  const seconds = Number(input['ttl_seconds'])
  return seconds >= 1 ? seconds * 1000 : Number.POSITIVE_INFINITY
}

/** Throws `Unanswered` when the daemon is stopped: asked now, it would do this when it goes on. */
export function refuseStopped({ pid }: Daemon): void {
  if (pid !== undefined && isStopped(pid)) throw stopped(pid)
}

const stopped = (pid: number) =>
  new Unanswered(`the server (PID: ${pid}) is stopped`, { next: `Let it go on: kill -CONT ${pid}` })

function silent({ pid, url }: Daemon, ms: number): Unanswered {
  const who = pid === undefined ? `the server at ${url}` : `the server (PID: ${pid})`
  const next = pid === undefined ? '' : `See what keeps it, or end it: kill ${pid}; leasehold up`
  return new Unanswered(`${who} has not answered for ${Math.round(ms / 100) / 10} s`, { next })
}

/**
 * Watches a call that is under way, and calls `giveUp`, once, when nobody will answer it: the
 * daemon was stopped, or is silent and does not even answer whether it is there. A renewal asks
 * nothing of the kind: it is given up in time to be made elsewhere. Returns what to call with the
 * answer.
 */
export function watchSilence(
  daemon: Daemon,
  { operation, input, ttl_ms = stakeIn(input) }: Pick<ReachAsk, 'operation' | 'input' | 'ttl_ms'>,
  giveUp: (why: Unanswered) => void,
): () => void {
  const silent_ms = patienceFor(ttl_ms)
  const begun_ms = performance.now() + Number(input['wait_seconds'] ?? 0) * 1000
  let over = false
  let timer: NodeJS.Timeout
  const finish = (why?: Unanswered) => {
    if (over) return
    over = true
    clearTimeout(timer)
    if (why) giveUp(why)
  }
  const look = async () => {
    if (daemon.pid !== undefined && isStopped(daemon.pid)) return finish(stopped(daemon.pid))
    const waited_ms = performance.now() - begun_ms
    if (waited_ms >= silent_ms) {
      const isLate = operation.name === 'lock.renew' || waited_ms >= BUSY_MS
      if (isLate || !(await isThere(daemon))) return finish(silent(daemon, waited_ms))
    }
    if (!over) timer = setTimeout(() => void look(), nextIn(waited_ms))
  }
  const nextIn = (waited_ms: number) =>
    waited_ms < silent_ms ? Math.min(LOOK_MS, silent_ms - waited_ms) : silent_ms
  timer = setTimeout(() => void look(), nextIn(performance.now() - begun_ms))
  return finish
}

/** Whether it answers at all, be it that its store is damaged: then it is at work. */
function isThere(daemon: Daemon): Promise<boolean> {
  return new Promise((resolve) => {
    const request = httpFor(daemon).get(
      new URL('/healthz', daemon.url),
      { timeout: HEALTH_MS, agent: false },
      (answer) => {
        answer.resume()
        resolve(true)
      },
    )
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false))
    request.on('close', () => resolve(false))
  })
}

/** Node's client for the daemon's address. Loaded here: most programs never need it. */
export const httpFor = ({ url }: Pick<Daemon, 'url'>) =>
  process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
