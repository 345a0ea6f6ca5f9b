import { readFileSync, readlinkSync } from 'node:fs'
import { planted } from '../core/planted.ts'
import { Refusal } from '../core/refusal.ts'
import type { ProcessRef } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'
import { carries, isOver, lineage, LINUX, lookAt, send, signalled, type Unseen } from './proc.ts'

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
 * What a time namespace adds to the clocks of its processes. Containers that share a state folder
 * may have one each, and the same boot id: without this they would disagree about what time it is
 * by years, and one of them would end the other's leases.
 */
interface TimeShift {
  monotonic_ms: number
  /** As the kernel says it; start times of processes are told with this added. */
  boottime: string
}

const NONE: TimeShift = { monotonic_ms: 0, boottime: '' }

/** From the lines `monotonic <seconds> <nanoseconds>` and `boottime …` of `timens_offsets`. */
function shiftIn(offsets: string): TimeShift {
  const shift = { ...NONE }
  for (const line of offsets.split('\n')) {
    const [clock, seconds, nanoseconds] = line.trim().split(/\s+/)
    const [s, ns] = [Number(seconds), Number(nanoseconds)]
    // Older kernels have numbers for the clocks.
    if (clock === 'monotonic' || clock === '1') shift.monotonic_ms = s * 1000 + ns / 1e6
    if ((clock === 'boottime' || clock === '7') && (s !== 0 || ns !== 0)) {
      shift.boottime = `${s}.${String(ns).padStart(9, '0')}`
    }
  }
  return shift
}

/**
 * That of this process. The file tells of a process' children: if those would be in another
 * namespace, this process has not been started in a new one, and has the clocks of the machine.
 */
function ownShift(): TimeShift {
  try {
    const [own, children] = ['time', 'time_for_children'].map((name) => {
      return readlinkSync(`/proc/self/ns/${name}`)
    })
    return own === children ? shiftIn(readFileSync('/proc/self/timens_offsets', 'utf8')) : NONE
  } catch (error) {
    // Neither other systems nor old kernels have time namespaces. Anything else is no answer: a
    // program that guesses what time it is would end leases of others.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NONE
    throw error
  }
}

export const timeShift = ownShift()

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

/** Whether somebody stopped (SIGSTOP) this process: it is there, and says nothing until SIGCONT. */
export function isStopped(pid: number): boolean {
  const stat = LINUX ? lookAt(pid) : 'hidden'
  return typeof stat === 'object' && (stat.state === 'T' || stat.state === 't')
}

/** The pid of a process's parent, unless that is the system. */
export function parentOf(pid: number): number | undefined {
  const stat = LINUX ? lookAt(pid) : 'hidden'
  return typeof stat === 'object' && stat.parent > 1 ? stat.parent : undefined
}

/** A process that this one descends from. */
export interface Ancestor {
  /** As the kernel knows it: at most 15 characters. */
  name: string
  /** Leads the session of a terminal: somebody types there, or a program does as if. */
  hasTerminal: boolean
  ref: ProcessRef
}

/**
 * The parent, its parent and so on, as far as they can be seen. None where there is no /proc.
 * Refuses (`unavailable`) when a look fails: who an agent is must not depend on luck.
 */
export function* ancestors(): Generator<Ancestor> {
  if (!LINUX) return
  for (const { pid, stat } of lineage(process.ppid)) {
    if (stat === 'failed') throw unseen(pid, stat)
    if (typeof stat === 'string') return
    const { name, start, session, tty } = stat
    yield { name, hasTerminal: tty !== 0 && session === pid, ref: { host, seat, pid, start } }
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

/** Set for a runner by the dispatcher that starts it: the folder of its run. */
export const RUNNER = 'LEASEHOLD_RUNNER'

/**
 * Ends a runner, if it still is the one that is meant. What says so is a file that every agent of
 * this login can write: only a process that was started to be the runner of this folder is ended.
 */
export function endRunner(ref: ProcessRef, folder: string): void {
  const isRunner = () => planted('R8') || carries(ref.pid, RUNNER, folder) === 'alive'
  if (ref.pid > 1 && processFact(ref) === 'alive' && isRunner()) send(ref.pid, 'SIGKILL')
}
