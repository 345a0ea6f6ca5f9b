import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../../src/core/refusal.ts'
import { FileBackend } from '../../src/stores/file/backend.ts'
import { pause } from '../../src/stores/file/lockfile.ts'
import type { Step } from '../../src/stores/file/publish.ts'
import { machine } from '../../src/machine/machine.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { Verbs } from '../support/verbs.ts'

/**
 * A process of its own on a file store:
 *   contend DIR AGENT CYCLES WITNESS NAME…   acquire, renew, release, again
 *   stream DIR AGENT                         takes lock after lock until it is killed
 *   stop DIR AGENT NAME STEP                 stops itself (SIGSTOP) at a step of publishing NAME
 *   add DIR AGENT TITLE                      adds one task
 * Says each acknowledged answer as one line of JSON. `LOCK=no` goes without the lock file.
 */
const [command, dir, agent, ...rest] = process.argv.slice(2) as [
  string,
  string,
  string,
  ...string[],
]

const caller = { agent, given: true, process: null, admin: false, under: null }

function say(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`)
}

function openStore(stopAt?: Step): Verbs {
  let stopped = false
  const backend = new FileBackend({
    dir,
    busy_timeout_ms: 5_000,
    lock: process.env['LOCK'] !== 'no',
    pause: (step) => {
      if (step !== stopAt || stopped) return
      stopped = true
      say({ stops: step })
      process.kill(process.pid, 'SIGSTOP')
    },
  })
  return new Verbs(new Store(backend, machine))
}

async function contend(cycles: number, witness: string, names: string[]): Promise<void> {
  const verbs = openStore()
  for (let i = 0; i < cycles; i += 1) {
    const name = names[(i + process.pid) % names.length]!
    const { fence } = await takeInTheEnd(verbs, name)
    const mark = join(witness, name)
    // A second holder would find the first one's mark, and fail here.
    closeSync(openSync(mark, 'wx'))
    if (i % 3 === 0) await verbs.renew(name, caller, fence)
    rmSync(mark)
    await verbs.release(name, caller, fence)
    say({ name, fence })
  }
}

async function takeInTheEnd(verbs: Verbs, name: string) {
  for (;;) {
    try {
      return await verbs.take(name, caller)
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'held') throw error
      await pause(5)
    }
  }
}

async function stream(): Promise<void> {
  const verbs = openStore()
  for (let i = 0; ; i += 1) {
    const { name, fence } = await verbs.take(`${agent}-${i}`, caller)
    say({ name, fence })
  }
}

async function answer(asked: Promise<unknown>): Promise<void> {
  const outcome: unknown = await asked.catch((error: unknown) => error)
  say(outcome instanceof Refusal ? outcome.toJSON() : outcome)
}

switch (command) {
  case 'contend':
    await contend(Number(rest[0]), rest[1]!, rest.slice(2))
    break
  case 'stream':
    await stream()
    break
  case 'stop':
    await answer(openStore(rest[1] as Step).take(rest[0]!, caller))
    break
  default:
    await answer(openStore().add(rest[0]!, caller))
}
