import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import type { Caller } from '../../src/core/caller.ts'
import { plant, type Promised } from '../../src/core/planted.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { call } from '../../src/operations/call.ts'
import { acquire, release, renew, type ShownLease } from '../../src/operations/locks.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { ownProcess } from '../../src/machine/process.ts'

/**
 * A process of its own on the store that its environment names:
 *   turns NAME COUNT MARK     takes a lock COUNT times, with a mark that only one can hold
 *   claim                     claims tasks until none is ready
 *   away ID                   claims a task for a second, stops itself (SIGSTOP), and when it goes
 *                             on tries every write under the lease that it had
 *   add COUNT [WHEN AT]       adds tasks, each under a request id; at the AT-th it kills itself,
 *                             `before` or `after` it has said that the task was added
 * Says each acknowledged answer as one line of JSON. Begins when told so on standard input.
 */
const [command, ...rest] = process.argv.slice(2)
const agent = process.env['LEASEHOLD_AGENT'] ?? `agent-${process.pid}`
const caller: Caller = { agent, given: true, process: ownProcess(), admin: false, under: null }
const store = openStore(placeOf(process.env, process.cwd()))
plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)

function say(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`)
}

/** Everybody is ready before anybody begins, or the first would be done before the last starts. */
function beginning(): Promise<void> {
  say('ready')
  return new Promise((resolve) => void process.stdin.once('data', () => resolve()))
}

async function turns(name: string, count: number, mark: string): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const { fence, refusals } = await takeInTheEnd(name)
    // A second holder would find the first one's mark, and fail here.
    closeSync(openSync(mark, 'wx'))
    rmSync(mark)
    await call(store, release, { name, fence }, caller)
    say({ fence, refusals })
  }
}

async function takeInTheEnd(name: string): Promise<{ fence: number; refusals: number }> {
  for (let refusals = 0; ; refusals += 1) {
    try {
      const lease = (await call(store, acquire, { names: [name] }, caller)) as ShownLease
      return { fence: lease.fence, refusals }
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'held') throw error
    }
    // reason: asks again as an impatient agent would; nothing is waited for
    await new Promise((resolve) => void setTimeout(resolve, Math.random() * 20))
  }
}

async function claimAll(): Promise<void> {
  for (;;) {
    const { task, lease } = await call(store, tasks.claim, {}, caller)
    if (!task) return
    say({ task: task.id, fence: lease?.fence })
  }
}

async function addTasks(count: number, when: string | undefined, at: number): Promise<void> {
  const first = Number(process.env['FIRST'] ?? 0)
  const die = () => process.kill(process.pid, 'SIGKILL')
  for (let i = first; i < first + count; i += 1) {
    const title = `${agent} ${i}`
    const aimed = i === first + at
    if (aimed && when === 'before') store.onCommit(die)
    const { id } = await call(store, tasks.create, { title, request_id: `add-${i}` }, caller)
    say({ title, id, request: i })
    if (aimed && when === 'after') die()
  }
}

/** Everything it knows was read before it was stopped; all of it has to be found out of date. */
async function away(id: string): Promise<void> {
  const { task, lease } = await call(store, tasks.claim, { id, ttl_seconds: 1 }, caller)
  const { name, fence } = lease!
  say({ fence })
  process.kill(process.pid, 'SIGSTOP')
  const late = [
    () => call(store, renew, { name, fence }, caller),
    () => call(store, tasks.edit, { id, fence, version: task!.version, title: 'Late' }, caller),
    () => call(store, tasks.setStatus, { id, fence, status: 'done' }, caller),
    () => call(store, release, { name, fence }, caller),
  ]
  for (const write of late) {
    const said: unknown = await write().catch((error: unknown) => error)
    say(said instanceof Refusal ? said.code : 'accepted')
  }
}

await beginning()
if (command === 'turns') await turns(rest[0]!, Number(rest[1]), rest[2]!)
else if (command === 'claim') await claimAll()
else if (command === 'away') await away(rest[0]!)
else await addTasks(Number(rest[0]), rest[1], Number(rest[2]))
await store.close()
process.stdin.destroy()
