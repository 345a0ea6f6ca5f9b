import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { attempt } from '../core/attempt.ts'
import { planted } from '../core/planted.ts'
import type { Fact } from '../core/view.ts'
import { systemCode } from './errors.ts'

/*
 * What the kernel shows of processes. A look that failed is not an answer: a process that cannot be
 * seen (no descriptor left, a disk error, /proc mounted with hidepid) may well be alive, and taken
 * for dead its holder would be robbed. Only "no such process" proves that there is none.
 */

export const LINUX = process.platform === 'linux'

/** What `/proc/PID/stat` says. */
interface Stat {
  name: string
  state: string
  parent: number
  group: number
  session: number
  /** Of the terminal that it has; 0: none. */
  tty: number
  start: number
}

/**
 * Why there is nothing to see: `gone`, there is no such process; `hidden`, it is not for this login
 * to see; `failed`, the look itself went wrong, and another one may go well.
 */
export type Unseen = 'gone' | 'hidden' | 'failed'

/** A /proc of another pid namespace would show other processes under the same numbers. */
const showsOurs = LINUX && readlinkSync('/proc/self') === String(process.pid)

const PROVES_ABSENCE = new Set(['ENOENT', 'ESRCH'])
const FORBIDS = new Set(['EACCES', 'EPERM'])

/** Looks at one process. */
export function lookAt(pid: number): Stat | Unseen {
  if (pid !== process.pid && !showsOurs) return 'hidden'
  try {
    return parsed(readFileSync(`/proc/${pid === process.pid ? 'self' : pid}/stat`, 'utf8'))
  } catch (error) {
    if (planted('S1 look')) return 'gone'
    return whyUnseen(error, pid)
  }
}

/** Under hidepid a living process of another login looks like none; signals tell them apart. */
function whyUnseen(error: unknown, pid: number): Unseen {
  const code = systemCode(error) ?? ''
  if (PROVES_ABSENCE.has(code)) return signalled(pid) === 'dead' ? 'gone' : 'hidden'
  return FORBIDS.has(code) ? 'hidden' : 'failed'
}

function parsed(text: string): Stat {
  // The command's name stands in parentheses and may itself contain any of ") (".
  const end = text.lastIndexOf(')')
  const fields = text.slice(end + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    state: fields[0]!,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    tty: Number(fields[4]),
    start: Number(fields[19]),
  }
}

/** Zombies answer signals but run nothing. */
export function isOver({ state }: Stat): boolean {
  return state === 'Z' || state === 'X'
}

const LINEAGE_MAX = 64

/** A process, its parent, and so on upward: as far as they can be seen, and the look that fails. */
export function* lineage(from: number): Generator<{ pid: number; stat: Stat | Unseen }> {
  let pid = from
  for (let i = 0; i < LINEAGE_MAX && pid > 0; i += 1) {
    const stat = lookAt(pid)
    yield { pid, stat }
    if (typeof stat === 'string') return
    pid = stat.parent
  }
}

/** Whether there is a process of this number, or with a minus before it a group. */
export function signalled(pid: number): Fact {
  try {
    process.kill(pid, 0)
    return 'alive'
  } catch (error) {
    return systemCode(error) === 'ESRCH' ? 'dead' : 'unknown'
  }
}

export interface FoundProcess extends Stat {
  pid: number
}

/** What runs here, as far as /proc shows it: zombies too. Unless `whole`, there may be others. */
export function census() {
  const found: FoundProcess[] = []
  let whole = showsOurs
  for (const pid of pids()) {
    const stat = pid === undefined ? 'failed' : lookAt(pid)
    if (typeof stat === 'object') found.push({ pid: pid!, ...stat })
    else if (stat === 'failed') whole = false
  }
  return { found, whole }
}

/** An undefined one stands for those that could not be listed. */
function pids(): (number | undefined)[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0)
  } catch {
    return [undefined]
  }
}

/** Processes, zombies not, whose working directory is `folder` or below; as far as can be seen. */
export function workingIn(folder: string): FoundProcess[] {
  const real = attempt(() => realpathSync(folder), folder)
  const isIn = ({ pid }: FoundProcess) => {
    const at = attempt(() => readlinkSync(`/proc/${pid}/cwd`), '')
    return at === real || at.startsWith(`${real}/`)
  }
  return LINUX ? census().found.filter((each) => !isOver(each) && isIn(each)) : []
}

/** Whether /proc leaves out processes of other logins. */
export const hidesOthers = () => lookAt(1) === 'hidden'

/**
 * Whether `name` in the environment of a process is `value`, or a list (with `:` between) that has
 * it. What another login runs, or what keeps its memory to itself, cannot be read by anybody like
 * us, and is not ours; any other look that fails may have missed it, and so does one at a process
 * that is just becoming another program, which has no environment for a moment.
 */
export function carries(pid: number, name: string, value: string): Fact {
  let environment: string
  try {
    environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch (error) {
    const code = systemCode(error) ?? ''
    return PROVES_ABSENCE.has(code) || FORBIDS.has(code) ? 'dead' : 'unknown'
  }
  if (environment === '') return 'unknown'
  // Most processes have nothing of ours: to take every environment apart would cost a lot.
  if (!environment.includes(`${name}=`)) return 'dead'
  const said = environment.split('\0').filter((entry) => entry.startsWith(`${name}=`))
  const wanted = Buffer.from(value).toString('latin1')
  const has = (entry: string) => {
    const listed = entry.slice(name.length + 1)
    return listed === wanted || listed.split(':').includes(wanted)
  }
  return said.some(has) ? 'alive' : 'dead'
}

/** What a process was started with, as the kernel has it; undefined where it cannot be read. */
export function environmentOf(pid: number): Record<string, string | undefined> | undefined {
  try {
    const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return Object.fromEntries(entries.map((each) => each.split(/=(.*)/s).slice(0, 2)))
  } catch {
    return undefined
  }
}

/** What all that a login or a container starts has in common, and nothing else. */
export const controlGroup = (pid: number | 'self') =>
  attempt(() => {
    const group = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
    return group + readlinkSync(`/proc/${pid}/ns/cgroup`)
  }, undefined)

/**
 * A stopped process does not see TERM until it goes on. False when it is not ours to signal. A 0 or
 * a 1 would mean our own group, everything on this machine, or what started all of it.
 */
export function send(pid: number, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  if (!Number.isSafeInteger(pid) || Math.abs(pid) <= 1) return false
  try {
    process.kill(pid, signal)
    process.kill(pid, 'SIGCONT')
    return true
  } catch (error) {
    return systemCode(error) === 'ESRCH'
  }
}
