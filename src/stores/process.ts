import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { ProcessRef } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'

const LINUX = process.platform === 'linux'

export const host = hostname()

/** Identifies this boot: the monotonic clock and all pids start over with the next one. */
export const boot = LINUX
  ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  : process
      .getBuiltinModule('node:child_process')
      .execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' })
      .trim()

/** The same pid means another process in another pid namespace, though boot and host agree. */
export const seat = `${boot}/${LINUX ? readlinkSync('/proc/self/ns/pid') : process.platform}`

interface Stat {
  state: string
  group: number
  start: number
}

function readStat(pid: number | string): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The command's name stands in parentheses and may itself contain any of ") (".
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0]!, group: Number(fields[2]), start: Number(fields[19]) }
}

/** Zombies answer signals but run nothing. */
function isOver(stat: Stat): boolean {
  return stat.state === 'Z' || stat.state === 'X'
}

/** A process that runs here now, so that it can be recognised later; undefined if there is none. */
export function processRef(pid: number): ProcessRef | undefined {
  if (!LINUX) return signalled(pid) === 'dead' ? undefined : { host, seat, pid, start: 0 }
  const stat = readStat(pid)
  return stat && !isOver(stat) ? { host, seat, pid, start: stat.start } : undefined
}

let self: ProcessRef | undefined

export function ownProcess(): ProcessRef {
  return (self ??= processRef(process.pid)!)
}

export function processFact(ref: ProcessRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (ref.pid === process.pid && ref.start === ownProcess().start) return 'alive'
  if (!LINUX) return signalled(ref.pid)
  const stat = readStat(ref.pid)
  return stat && stat.start === ref.start && !isOver(stat) ? 'alive' : 'dead'
}

/**
 * Whether anyone is left in a process group. While a group has members the kernel does not give its
 * number to a new process, so a leader with another start time proves the old group gone.
 */
export function groupFact(ref: ProcessRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (signalled(-ref.pid) === 'dead') return 'dead'
  if (!LINUX) return 'alive'
  const leader = readStat(ref.pid)
  if (leader && leader.start !== ref.start) return 'dead'
  return members(ref.pid).length > 0 ? 'alive' : 'dead'
}

function members(group: number): number[] {
  const found: number[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!(pid > 0)) continue
    const stat = readStat(pid)
    if (stat?.group === group && !isOver(stat)) found.push(pid)
  }
  return found
}

function signalled(pid: number): Fact {
  try {
    process.kill(pid, 0)
    return 'alive'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'dead' : 'unknown'
  }
}

const TERM_MS = 2_000
const KILL_MS = 5_000
const LOOK_MS = 10

/**
 * Stops a process group: TERM, a moment to clean up, KILL, then waits until no member is left.
 * False when it cannot be done from here. Never signals a group whose leader is not ours.
 */
export async function stopGroup(ref: ProcessRef, term_ms = TERM_MS): Promise<boolean> {
  for (const [signal, patience_ms] of [
    ['SIGTERM', term_ms],
    ['SIGKILL', KILL_MS],
  ] as const) {
    const fact = groupFact(ref)
    if (fact !== 'alive') return fact === 'dead'
    try {
      process.kill(-ref.pid, signal)
      // A stopped process does not see TERM until it goes on.
      process.kill(-ref.pid, 'SIGCONT')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') return false
    }
    if (await isGoneWithin(ref, patience_ms)) return true
  }
  return false
}

async function isGoneWithin(ref: ProcessRef, patience_ms: number): Promise<boolean> {
  const until = performance.now() + patience_ms
  while (groupFact(ref) === 'alive') {
    if (performance.now() > until) return false
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
  return true
}
