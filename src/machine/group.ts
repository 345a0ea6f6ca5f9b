import { planted } from '../core/planted.ts'
import { type GroupRef, MARK_FORM, PID_MAX } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'
import {
  carries,
  census,
  hidesOthers,
  isOver,
  lineage,
  LINUX,
  lookAt,
  send,
  signalled,
  type FoundProcess,
} from './proc.ts'
import { ownProcess, processFact, seat } from './process.ts'

/*
 * Process groups that we started. What a row says about one is a claim, not a fact: it may have
 * been made on another machine, by an older version, or by hand. So nothing is signalled that does
 * not carry the random mark of its group in its environment, except by the very process that
 * started it. A group that lives and cannot be proved ours is `unknown`: its lock comes free in
 * time, as that of a host that cannot be asked.
 */

/** In the environment of everything that a command of ours starts, whatever group it moves to. */
export const MARK = 'LEASEHOLD_MARK'

export function newMark(): string {
  return process.getBuiltinModule('node:crypto').randomBytes(16).toString('hex')
}

let ownMark: string | undefined

/** At the start of a program of ours that leads a group: what it starts has the mark by choice. */
export function takeMark(): void {
  ownMark = process.env[MARK]
  delete process.env[MARK]
}

/** A git command that is told to stop takes its locks away. */
const GIT_GRACE_MS = 5_000

/** The group that this process leads, if it was given a mark for it. */
export const ownGroup = (): GroupRef | undefined =>
  ownMark === undefined ? undefined : { ...ownProcess(), mark: ownMark, grace_ms: GIT_GRACE_MS }

/** Groups that this very process started, and that have not ended yet. */
const started = new Set<string>()

const keyOf = ({ pid, start }: { pid: number; start: number }) => `${pid} ${start}`

/** We started this one: it may be stopped from here, marked or not. Returns what ends that. */
export function noteStarted(ref: GroupRef): () => void {
  const key = keyOf(ref)
  started.add(key)
  return () => void started.delete(key)
}

/**
 * Whether anyone is left of a process group of ours: a member, or a process that left it and still
 * carries its mark. While a group has members the kernel does not give its number to a new process,
 * so a leader with another start time proves the old group gone.
 */
export function groupFact(ref: GroupRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  const members = membersOf(ref)
  if (members.fact === 'alive') return isOurs(ref, members.living) ? 'alive' : 'unknown'
  // Only now: this looks into every process, and most groups end with nobody gone astray.
  const astray = stragglers(ref)
  if (astray.found.length > 0) return 'alive'
  return astray.whole ? members.fact : 'unknown'
}

/**
 * Whether the leader of a group carries its mark, as it does from the moment we start it. `dead`
 * when it certainly does not: then it is no command of ours.
 */
export function leaderFact(ref: GroupRef): Fact {
  if (ref.seat !== seat) return 'unknown'
  if (ref.mark === undefined || !isNumber(ref.pid)) return 'dead'
  if (!LINUX) return signalled(ref.pid) === 'dead' ? 'dead' : 'unknown'
  const leader = lookAt(ref.pid)
  // A look that failed says nothing, and nothing is signalled without another one.
  if (typeof leader === 'string') return leader === 'gone' ? 'dead' : 'unknown'
  const { start, group, session } = leader
  if (isOver(leader) || start !== ref.start || group !== ref.pid) return 'dead'
  if (session === ownSession() || isKin(ref.pid)) return 'dead'
  return carries(ref.pid, MARK, ref.mark)
}

interface Members {
  fact: Fact
  living: FoundProcess[]
}

/** Whether the group of this number is the one that is meant, and who of it still runs. */
function membersOf(ref: GroupRef): Members {
  const none = (fact: Fact): Members => ({ fact, living: [] })
  if (!isNumber(ref.pid)) return none('unknown')
  if (signalled(-ref.pid) === 'dead') return none('dead')
  if (!LINUX) return none('alive')
  const leader = lookAt(ref.pid)
  if (typeof leader === 'object' && leader.start !== ref.start) return none('dead')
  if (leader === 'hidden' || leader === 'failed') return none('unknown')
  const { found, whole } = census()
  const members = found.filter(({ group }) => group === ref.pid)
  const living = members.filter((member) => !isOver(member))
  if (living.length > 0) return { fact: 'alive', living }
  // The kernel says that there are members: zombies, unless some are kept from us.
  return none(whole && members.length > 0 && !hidesOthers() ? 'dead' : settled(ref, whole))
}

/** Nobody of it was seen: either it went while we looked, or it is hidden from us. */
function settled(ref: GroupRef, whole: boolean): Fact {
  return whole && signalled(-ref.pid) === 'dead' ? 'dead' : 'unknown'
}

/** Whether a living group is one that we may stop. */
function isOurs(ref: GroupRef, living: FoundProcess[]): boolean {
  if (started.has(keyOf(ref))) return true
  if (planted('R8')) return true
  const { mark } = ref
  if (mark === undefined || !MARK_FORM.test(mark) || isKin(ref.pid)) return false
  // A command of ours has a session of its own: what shares ours was started by others.
  const session = ownSession()
  if (living.some((member) => member.session === session)) return false
  return living.some(({ pid }) => carries(pid, MARK, mark) === 'alive')
}

function ownSession(): number | undefined {
  const self = lookAt(process.pid)
  return typeof self === 'object' ? self.session : undefined
}

/** To signal the group 0 or 1 would be to signal ourselves, or everything. */
const isNumber = (group: number) => group > 1 && group <= PID_MAX

/** Whether this group is our own, or one of those that we descend from; also if nobody can tell. */
function isKin(group: number): boolean {
  if (!isNumber(group)) return true
  if (!LINUX) return false
  for (const { pid, stat } of lineage(process.pid)) {
    // Those above one that is hidden from us belong to others too.
    if (typeof stat === 'string') return stat === 'failed'
    if (pid === group || stat.group === group || stat.session === group) return true
  }
  return false
}

/**
 * Living processes outside the group that carry its mark; none is older than its leader. Our own
 * kin, if it is among them, is not ours to stop.
 */
function stragglers(ref: GroupRef): { found: FoundProcess[]; whole: boolean } {
  const { mark } = ref
  const isSought = mark !== undefined && MARK_FORM.test(mark) && !ref.lets_go
  if (!isSought || !LINUX) return { found: [], whole: true }
  const { found, whole } = census()
  let all = whole
  const astray = found.filter((one) => {
    if (one.group === ref.pid || one.start < ref.start || isOver(one)) return false
    const fact = carries(one.pid, MARK, mark)
    if (fact === 'alive' && !isKin(one.group)) return true
    all &&= fact === 'dead'
    return false
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
 * not the one that was looked at, nor one that is not proved ours.
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
      const once = told.size === 0 || ref.mark === undefined || ref.lets_go
      if (empty > 0 && (once || empty > 1)) return true
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
  const { fact, living } = membersOf(ref)
  const grouped = fact === 'alive' && isOurs(ref, living)
  if (grouped && once(-ref.pid, ref.start) && !send(-ref.pid, signal)) return 'forbidden'
  for (const { pid, group, start } of astray) {
    if (!once(pid, start) || processFact({ ...ref, pid, start }) !== 'alive') continue
    // A straggler that leads a group made it: in one step, its children cannot get away.
    send(group === pid && signal === 'SIGKILL' ? -pid : pid, signal)
  }
  if (grouped || astray.length > 0) return 'some'
  return whole && fact === 'dead' ? 'none' : 'unseen'
}
