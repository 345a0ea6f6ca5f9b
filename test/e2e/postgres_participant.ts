import { seeAgent } from '../../src/core/locks/agent.ts'
import { claimNext } from '../../src/core/tasks/claim.ts'
import { acquireLocks } from '../../src/core/locks/lock.ts'
import { moveTask } from '../../src/core/tasks/move.ts'
import { machine } from '../../src/machine/machine.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'

/**
 * A process of its own on a PostgreSQL store, at `LEASEHOLD_STORE`. Waits for a line, then:
 * `claim CALLERS` claims and completes tasks until none is ready, and prints each with its fence;
 * `stop NAME` takes a lock, and stops itself in the middle of the transaction.
 */
const address = addressOf(process.env['LEASEHOLD_STORE']!)
const store = new Store(new PostgresBackend({ address, busy_timeout_ms: 5_000 }), machine)
const [, , what, argument = ''] = process.argv
const TTL_MS = 60_000

const callerOf = (name: string) => {
  return { agent: name, given: true, process: null, admin: false, under: null }
}

async function claimAll(agent: string): Promise<void> {
  const caller = callerOf(agent)
  const ask = { ttl_ms: TTL_MS, process: null, takeover: false }
  for (;;) {
    const claim = await store.write((view) => {
      seeAgent(view, caller)
      return claimNext(view, {}, ask, caller)[0]
    })
    if (!claim) return
    const { id } = claim.task
    const { fence } = claim.lease
    await store.write((view) => moveTask(view, { id, to: 'done', fence, ...ask }, caller))
    process.stdout.write(`${id} ${fence}\n`)
  }
}

async function stopInside(name: string): Promise<void> {
  let stopped = false
  const ask = { names: [name], ttl_ms: TTL_MS, process: null, priority: 0, takeover: false }
  const leases = await store.write((view) => {
    const granted = acquireLocks(view, ask, callerOf('stopped'))
    if (!stopped) process.kill(process.pid, 'SIGSTOP')
    stopped = true
    return granted
  })
  process.stdout.write(`took ${JSON.stringify(leases)}\n`)
}

await store.write(() => undefined)
process.stdout.write('ready\n')
await new Promise((resolve) => void process.stdin.once('data', resolve))
const began = performance.now()
if (what === 'stop') await stopInside(argument).catch((e: Error) => console.log(e.message))
else
  await Promise.all(
    Array.from({ length: Number(argument) }, (_, i) => claimAll(`${process.pid}/${i}`)),
  )
process.stdout.write(`took_ms ${Math.round(performance.now() - began)}\n`)
await store.close()
process.stdin.destroy()
