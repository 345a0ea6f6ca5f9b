import { readFileSync, readlinkSync } from 'node:fs'

/**
 * What a time namespace adds to the clocks of its processes. Containers that share a state folder
 * may have one each, and the same boot id: without this they would disagree about what time it is
 * by years, and one of them would end the other's leases.
 */
export interface TimeShift {
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
