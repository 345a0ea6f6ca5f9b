import { readFileSync, readlinkSync } from 'node:fs'
import { Refusal } from '../core/refusal.ts'
import type { GroupRef, ProcessRef } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'
import { carries, census, hidesOthers, isOver, LINUX, lookAt, signalled } from './proc.ts'
import type { Found, Unseen } from './proc.ts'
import { timeShift } from './time_namespace.ts'

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

/**
 * A process that runs here now, so that it can be recognised later; undefined if there is none.
 * Refuses (`unavailable`) when nobody can tell.
 */
export function processRef(pid: number): ProcessRef | undefined {
  if (!LINUX) return signalled(pid) === 'dead' ? undefined : { host, seat, pid, start: 0 }
  const stat = lookAt(pid)
  if (stat === 'hidden' || stat === 'failed') throw unseen(pid, stat)
  return stat === 'gone' || isOver(stat) ? undefined : { host, seat, pid, start: stat.start }
}

function unseen(pid: number, why: Unseen): Refusal {
  const hidden = why === 'hidden'
  const said = hidden ? 'it is hidden from this login' : '/proc could not be read just now'
  return new Refusal('unavailable', `Process ${pid} cannot be looked at: ${said}`, {
    next: hidden ? 'Name a process of your own login.' : 'Try again in a moment.',
    details: { pid },
  })
}

let self: ProcessRef | undefined

export function ownProcess(): ProcessRef {
  return (self ??= processRef(process.pid)!)
}

/** Whether a process of this number is here, whichever it is. */
export function pidFact(pid: number): Fact {
  if (!LINUX) return signalled(pid)
  const stat = lookAt(pid)
  if (typeof stat === 'string') return stat === 'gone' ? 'dead' : 'unknown'
  return isOver(stat) ? 'dead' : 'alive'
}

/** Whether somebody stopped (SIGSTOP) this process: it is there, and says nothing until SIGCONT. */
export function isStopped(pid: number): boolean {
  const stat = LINUX ? lookAt(pid) : 'hidden'
  return typeof stat === 'object' && (stat.state === 'T' || stat.state === 't')
}

/** A process that this one descends from. */
export interface Ancestor {
  /** As the kernel knows it: at most 15 characters. */
  name: string
  ref: ProcessRef
}

const ANCESTORS_MAX = 64

/**
 * The parent, its parent and so on, as far as they can be seen. None where there is no /proc.
 * Refuses (`unavailable`) when a look fails: who an agent is must not depend on luck.
 */
export function* ancestors(): Generator<Ancestor> {
  if (!LINUX) return
  let pid = process.ppid
  for (let i = 0; i < ANCESTORS_MAX && pid > 0; i += 1) {
    const stat = lookAt(pid)
    if (stat === 'failed') throw unseen(pid, stat)
    if (typeof stat === 'string') return
    yield { name: stat.name, ref: { host, seat, pid, start: stat.start } }
    pid = stat.parent
  }
}

export function processFact(ref: ProcessRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (ref.pid === process.pid && ref.start === self?.start) return 'alive'
  if (!LINUX) return signalled(ref.pid)
  const stat = lookAt(ref.pid)
  if (typeof stat === 'string') return stat === 'gone' ? 'dead' : 'unknown'
  return stat.start === ref.start && !isOver(stat) ? 'alive' : 'dead'
}

/** Ends a process, if it still is the one that is meant. */
export function endProcess(ref: ProcessRef): void {
  if (processFact(ref) === 'alive') send(ref.pid, 'SIGKILL')
}

/**
 * Whether anyone is left of a process group: a member, or a process that left it and still carries
 * its mark. While a group has members the kernel does not give its number to a new process, so a
 * leader with another start time proves the old group gone.
 */
export function groupFact(ref: GroupRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  const members = membersFact(ref)
  if (members === 'alive') return 'alive'
  // Only now: this looks into every process, and most groups end with nobody gone astray.
  const astray = stragglers(ref)
  if (astray.found.length > 0) return 'alive'
  return astray.whole ? members : 'unknown'
}

/** Whether the group of this number is the one that is meant, and somebody of it still runs. */
function membersFact(ref: GroupRef): Fact {
  if (signalled(-ref.pid) === 'dead') return 'dead'
  if (!LINUX) return 'alive'
  const leader = lookAt(ref.pid)
  if (typeof leader === 'object' && leader.start !== ref.start) return 'dead'
  if (leader === 'hidden' || leader === 'failed') return 'unknown'
  const { found, whole } = census()
  const members = found.filter(({ group }) => group === ref.pid)
  if (members.some((member) => !isOver(member))) return 'alive'
  // The kernel says that there are members: zombies, unless some are kept from us.
  return whole && members.length > 0 && !hidesOthers() ? 'dead' : settled(ref, whole)
}

/** Nobody of it was seen: either it went while we looked, or it is hidden from us. */
function settled(ref: GroupRef, whole: boolean): Fact {
  return whole && signalled(-ref.pid) === 'dead' ? 'dead' : 'unknown'
}

/** In the environment of everything that a run starts, whatever group it moves to. */
export const MARK = 'LEASEHOLD_MARK'

/** Living processes outside the group that carry its mark; none is older than its leader. */
function stragglers(ref: GroupRef): { found: Found[]; whole: boolean } {
  if (ref.mark === undefined || !LINUX) return { found: [], whole: true }
  const entry = Buffer.from(`${MARK}=${ref.mark}`)
  const { found, whole } = census()
  let all = whole
  const astray = found.filter((one) => {
    if (one.group === ref.pid || one.start < ref.start || isOver(one)) return false
    const fact = carries(one.pid, entry)
    all &&= fact !== 'unknown'
    return fact === 'alive'
  })
  return { found: astray, whole: all }
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
      // A look that failed has not found nobody.
      empty = left === 'none' ? empty + 1 : 0
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
  const { found: astray, whole } = stragglers(ref)
  const members = membersFact(ref)
  const grouped = members === 'alive'
  if (grouped && once(-ref.pid, ref.start) && !send(-ref.pid, signal)) return 'forbidden'
  for (const { pid, group, start } of astray) {
    if (!once(pid, start) || processFact({ ...ref, pid, start }) !== 'alive') continue
    // A straggler that leads a group made it: in one step, its children cannot get away.
    send(group === pid && signal === 'SIGKILL' ? -pid : pid, signal)
  }
  if (grouped || astray.length > 0) return 'some'
  return whole && members === 'dead' ? 'none' : 'unseen'
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
