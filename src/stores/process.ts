import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { GroupRef, ProcessRef } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'
import { timeShift } from './time_namespace.ts'

const LINUX = process.platform === 'linux'

/** As `hostname` of `node:os` says it, which every hook would have to load for this. */
export const host = LINUX
  ? readFileSync('/proc/sys/kernel/hostname', 'utf8').trim()
  : process.getBuiltinModule('node:os').hostname()

/** Identifies this boot: the monotonic clock and all pids start over with the next one. */
export const boot = LINUX
  ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  : process
      .getBuiltinModule('node:child_process')
      .execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' })
      .trim()

const space = LINUX ? readlinkSync('/proc/self/ns/pid') : process.platform

/**
 * The same pid means another process in another pid namespace, though boot and host agree; and in
 * another time namespace the same process has another start time.
 */
export const seat = `${boot}/${space}${timeShift.boottime && `/time+${timeShift.boottime}`}`

interface Stat {
  name: string
  state: string
  parent: number
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
  const end = text.lastIndexOf(')')
  const fields = text.slice(end + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    state: fields[0]!,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    start: Number(fields[19]),
  }
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

/** A process that this one descends from. */
export interface Ancestor {
  /** As the kernel knows it: at most 15 characters. */
  name: string
  ref: ProcessRef
}

const ANCESTORS_MAX = 64

/** The parent, its parent and so on, as far as they can be seen. None where there is no /proc. */
export function* ancestors(): Generator<Ancestor> {
  if (!LINUX) return
  let pid = process.ppid
  for (let i = 0; i < ANCESTORS_MAX && pid > 0; i += 1) {
    const stat = readStat(pid)
    if (!stat) return
    yield { name: stat.name, ref: { host, seat, pid, start: stat.start } }
    pid = stat.parent
  }
}

export function processFact(ref: ProcessRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (ref.pid === process.pid && ref.start === ownProcess().start) return 'alive'
  if (!LINUX) return signalled(ref.pid)
  const stat = readStat(ref.pid)
  return stat && stat.start === ref.start && !isOver(stat) ? 'alive' : 'dead'
}

/**
 * Whether anyone is left of a process group: a member, or a process that left it and still carries
 * its mark. While a group has members the kernel does not give its number to a new process, so a
 * leader with another start time proves the old group gone.
 */
export function groupFact(ref: GroupRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (isStanding(ref) && (!LINUX || hasMembers(ref.pid))) return 'alive'
  // Only now: this looks into every process, and most groups end with nobody gone astray.
  return stragglers(ref).length > 0 ? 'alive' : 'dead'
}

/** Whether there is a group of this number, and it is this one. Zombies count here. */
function isStanding(ref: GroupRef): boolean {
  if (signalled(-ref.pid) === 'dead') return false
  const leader = LINUX ? readStat(ref.pid) : undefined
  return leader === undefined || leader.start === ref.start
}

interface Found extends Stat {
  pid: number
}

function* living(): Generator<Found> {
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    const stat = pid > 0 ? readStat(pid) : undefined
    if (stat && !isOver(stat)) yield { pid, ...stat }
  }
}

const hasMembers = (group: number) => [...living()].some((found) => found.group === group)

/** In the environment of everything that a run starts, whatever group it moves to. */
export const MARK = 'LEASEHOLD_MARK'

/** Living processes outside the group that carry its mark; none is older than its leader. */
function stragglers(ref: GroupRef): Found[] {
  if (ref.mark === undefined || !LINUX) return []
  const entry = Buffer.from(`${MARK}=${ref.mark}`)
  return [...living()].filter(({ pid, group, start }) => {
    return group !== ref.pid && start >= ref.start && carries(pid, entry)
  })
}

/** Whether `entry` is in the environment. What another login runs cannot be read: not ours. */
function carries(pid: number, entry: Buffer): boolean {
  let environment: Buffer
  try {
    environment = readFileSync(`/proc/${pid}/environ`)
  } catch {
    return false
  }
  const end = entry.length
  for (let at = environment.indexOf(entry); at !== -1; at = environment.indexOf(entry, at + 1)) {
    const begins = at === 0 || environment[at - 1] === 0
    const ends = at + end === environment.length || environment[at + end] === 0
    if (begins && ends) return true
  }
  return false
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
const LOOK_MS_MAX = 100

/**
 * Stops a process group and what went astray from it: TERM, a moment to clean up, KILL, then waits
 * until nobody is left. False when it cannot be done from here. Never signals a process that is
 * not the one that was looked at.
 */
export async function stopGroup(ref: GroupRef, term_ms?: number): Promise<boolean> {
  if (ref.seat !== seat) return false
  const grace_ms = term_ms ?? ref.grace_ms ?? TERM_MS
  const told = new Set<string>()
  let empty = 0
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const until = performance.now() + (signal === 'SIGTERM' ? grace_ms : KILL_MS)
    for (let look_ms = LOOK_MS; ; look_ms = Math.min(look_ms * 1.5, LOOK_MS_MAX)) {
      const left = tell(ref, signal, told)
      if (left === 'forbidden') return false
      empty = left === 'some' ? 0 : empty + 1
      // A process has no environment for a moment while it becomes another program: look twice.
      if (empty > 0 && (told.size === 0 || ref.mark === undefined || empty > 1)) return true
      const left_ms = until - performance.now()
      if (left_ms <= 0 && empty === 0) break
      const pause_ms = signal === 'SIGKILL' || empty > 0 ? LOOK_MS : Math.min(look_ms, left_ms)
      await new Promise((resolve) => void setTimeout(resolve, pause_ms))
    }
  }
  return groupFact(ref) === 'dead'
}

/**
 * Sends a signal to all that is left now: TERM once to each, KILL as often as anybody is found,
 * because what was just being forked had to be found first.
 */
function tell(ref: GroupRef, signal: 'SIGTERM' | 'SIGKILL', told: Set<string>) {
  const once = (pid: number, start: number) => {
    const key = `${pid} ${start}`
    if (signal === 'SIGTERM' && told.has(key)) return false
    told.add(key)
    return true
  }
  const astray = stragglers(ref)
  const grouped = isStanding(ref) && (!LINUX || hasMembers(ref.pid))
  if (grouped && once(-ref.pid, ref.start) && !send(-ref.pid, signal)) return 'forbidden'
  for (const { pid, group, start } of astray) {
    if (!once(pid, start) || readStat(pid)?.start !== start) continue
    // A straggler that leads a group made it: in one step, its children cannot get away.
    send(group === pid && signal === 'SIGKILL' ? -pid : pid, signal)
  }
  return grouped || astray.length > 0 ? 'some' : 'none'
}

/** A stopped process does not see TERM until it goes on. False when it is not ours to signal. */
function send(pid: number, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    process.kill(pid, signal)
    process.kill(pid, 'SIGCONT')
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
