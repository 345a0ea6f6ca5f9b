import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'

const FOLDER = resolve('bench/peers/plainjob')
const DRAIN = resolve(FOLDER, 'drain.mjs')

/** Which durability: plainjob sets NORMAL for itself; FULL is what we always run at. */
export type Durability = 'default' | 'full'
const SYNCHRONOUS: Record<Durability, number> = { default: 1, full: 2 }

/** Installs the peer if it is not there yet. Says why when it cannot be built. */
export function installPlainjob(): string | undefined {
  if (works()) return undefined
  console.error('Installing plainjob 0.0.14 (better-sqlite3 is compiled: one to two minutes) …')
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: FOLDER,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (done.status === 0 && works()) return undefined
  return 'plainjob could not be installed: it needs the registry, python3, make and a C++ compiler'
}

function works(): boolean {
  if (!existsSync(resolve(FOLDER, 'node_modules/plainjob'))) return false
  const load = ['-e', `new (require('better-sqlite3'))(':memory:')`]
  return spawnSync(process.execPath, load, { cwd: FOLDER }).status === 0
}

interface Drained {
  done: number
  started_ms: number
  last_ms: number
  synchronous: number
}

/**
 * plainjob's own benchmark: `jobs` jobs, drained by `processes` processes. Jobs per second, or
 * undefined when one of them gave up: on a busy machine several meet `database is locked`.
 */
export async function drainPlainjob(
  path: string,
  jobs: number,
  processes: number,
  durability: Durability,
): Promise<number | undefined> {
  execFileSync(process.execPath, [DRAIN, 'fill', path, String(jobs)], { stdio: 'inherit' })
  const children = Array.from({ length: processes }, () =>
    fork(DRAIN, ['drain', path, durability], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
  )
  try {
    return rateOf(await drainTogether(children), jobs, durability)
  } catch (error) {
    if (error instanceof GaveUp) return undefined
    throw error
  } finally {
    await Promise.all(children.map(ended))
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
  }
}

class GaveUp extends Error {}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}

/** All are ready before any begins. */
async function drainTogether(children: ChildProcess[]): Promise<Drained[]> {
  const answer = (child: ChildProcess) =>
    new Promise<unknown>((answered, failed) => {
      child.once('message', answered)
      child.once('exit', () => failed(new GaveUp('plainjob ended early')))
    })
  await Promise.all(children.map(answer))
  const drained = Promise.all(children.map(answer))
  for (const child of children) child.send('go')
  return (await drained) as Drained[]
}

function rateOf(parts: Drained[], jobs: number, durability: Durability): number {
  if (parts.some((part) => part.synchronous !== SYNCHRONOUS[durability])) {
    throw new Error(`plainjob did not run at the durability asked for (${durability})`)
  }
  const total = parts.reduce((sum, part) => sum + part.done, 0)
  if (total !== jobs) throw new Error(`plainjob did ${total} of ${jobs} jobs`)
  const started_ms = Math.min(...parts.map((part) => part.started_ms))
  return (jobs / (Math.max(...parts.map((part) => part.last_ms)) - started_ms)) * 1000
}
