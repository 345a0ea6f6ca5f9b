import { isRefusal, Refusal } from '../../../core/refusal.ts'
import { keepRenewing } from '../../../reach/renewing.ts'
import * as locks from '../../../operations/locks.ts'
import { sha256 } from '../../../machine/digest.ts'
import { hostIn } from '../../../machine/host.ts'
import { ownProcess } from '../../../machine/process.ts'
import { folderOf } from '../../../stores/open.ts'
import type { Context } from '../context.ts'

const TTL_SECONDS = 60

/** Under a lock that names this process: it is free the moment this process is gone. */
export async function underLock<T>(
  context: Context,
  dir: string,
  work: (call: Context['call'], lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const name = `sync:${hostIn(folderOf(context.place))}:${sha256(dir).slice(0, 12)}`
  const caller = { ...context.caller, process: ownProcess() }
  const grant = { names: [name], ttl_seconds: TTL_SECONDS, process: ownProcess() }
  const lease = await context.call(locks.acquire, grant, { caller }).catch((error: unknown) => {
    throw isRefusal(error, 'held') ? running(dir, error) : error
  })
  const fence = 'fence' in lease ? lease.fence : lease.items[0]!.fence
  const lost = new AbortController()
  const ttl_ms = TTL_SECONDS * 1000
  const renewal = { name, fence, request_id: undefined }
  const stop = keepRenewing({
    ttl_ms,
    renew: () => context.call(locks.renew, renewal, { caller, ttl_ms }),
    lose: (why) => lost.abort(lostLock(why)),
  })
  const call: Context['call'] = (operation, input, how) => {
    if (lost.signal.aborted) throw lost.signal.reason
    return context.call(operation, input, how)
  }
  try {
    return await work(call, lost.signal)
  } finally {
    stop()
    await context.call(locks.release, { name, fence }, { caller }).catch(() => undefined)
  }
}

const lostLock = (why: string) =>
  new Refusal('lease_expired', `The lock of this sync was lost: ${why}`, {
    next: 'Sync again. What was done so far is no trouble.',
  })

function running(dir: string, { details }: Refusal): Refusal {
  const pid = details['pid'] as number | undefined
  return new Refusal('held', `Another sync of ${dir} is running (PID: ${pid ?? 'unknown'})`, {
    next: 'Wait until it has ended. If that process is gone, so is its lock: try again.',
    details,
  })
}
