import type { Recorded, Violation } from './check_fences.ts'
import { type Call, type Effect, effectsOf, GRANTS, groupBy } from './history.ts'

/** What the store shows when all is over. */
export interface Final {
  events: Recorded[]
  tasks: { id: string; title: string; status: string; attempts: number; body: string }[]
  /** Keys of notes, each of which was written once. */
  notes: string[]
  /** What `db check` complains of. */
  problems: string[]
}

const CREATES = ['task.create', 'queue.add'] as const
const ENDS = ['task.status'] as const

/** A request id has one effect: every answer to it is the same one. */
export function checkRequests(calls: Call[]): Violation[] {
  const answers = new Map<string, { said: string; call: Call }>()
  const found: Violation[] = []
  for (const call of calls) {
    if (call.outcome !== 'ok') continue
    const key = `${call.op} ${call.agent} ${call.request}`
    const said = JSON.stringify([call.fences, call.task, call.value])
    const before = answers.get(key)
    answers.set(key, before ?? { said, call })
    if (!before || before.said === said) continue
    const says = `${key}: ${call.who} was told ${said}, ${before.call.who} ${before.said}`
    found.push({ check: 'one effect per request id', says })
  }
  return found
}

/** Every task that was acknowledged is there, once; none was invented; done is done, once. */
export function checkTasks(calls: Call[], { tasks, events }: Final): Violation[] {
  const check = 'no task lost, invented or ended twice'
  const found: Violation[] = []
  const byMark = groupBy(tasks, ({ title }) => title)
  for (const made of effectsOf(calls, CREATES)) {
    const there = byMark.get(made.mark!) ?? []
    if (there.some(({ id }) => id === made.task)) continue
    found.push({ check, says: `${made.mark} was acknowledged as ${made.task}, and is lost` })
  }
  const asked = new Set(calls.flatMap(({ mark }) => mark ?? []))
  for (const [mark, there] of byMark) {
    if (!asked.has(mark) && mark !== 'counter')
      found.push({ check, says: `${mark} was asked for by nobody` })
    if (there.length > 1) found.push({ check, says: `${mark} is there ${there.length} times` })
  }
  const byId = new Map(tasks.map((task) => [task.id, task]))
  for (const { task, who } of effectsOf(calls, ENDS)) {
    const status = byId.get(task!)?.status
    if (status !== 'done') found.push({ check, says: `${task} was done by ${who}, is ${status}` })
  }
  const ends = events.filter(({ type, data }) => {
    return (type === 'task.moved' || type === 'run.ended') && (data['to'] ?? '') === 'done'
  })
  for (const [task, times] of groupBy(ends, ({ task: id }) => id)) {
    if (times.length > 1) found.push({ check, says: `${task} was ended ${times.length} times` })
  }
  return found
}

/** Everything that somebody was told of is there in the end. */
export function checkDurable(calls: Call[], { events, notes, problems }: Final): Violation[] {
  const check = 'nothing acknowledged is lost'
  const found: Violation[] = problems.map((problem) => ({ check: 'db check', says: problem }))
  const first = events.at(0)?.position ?? 1
  const has = new Set(events.flatMap((event) => keysOf(event)))
  const expect = (kinds: string[], effect: Effect, lock: string, fence: number) => {
    // Older events may have been forgotten, as agreed.
    if (first > 1 || kinds.some((kind) => has.has(`${kind} ${lock} ${fence}`))) return
    const says = `${effect.op} of ${lock}#${fence} by ${effect.who} (${effect.door}) left no trace`
    found.push({ check, says })
  }
  for (const effect of effectsOf(calls, GRANTS)) {
    effect.fences?.forEach((fence, i) => {
      expect(['lease.granted', 'task.claimed'], effect, effect.locks![i]!, fence)
    })
  }
  for (const effect of effectsOf(calls, ['lock.release'])) {
    expect(['lease.released'], effect, effect.locks![0]!, effect.fence!)
  }
  for (const effect of effectsOf(calls, ENDS)) {
    expect(['task.moved'], effect, effect.locks![0]!, effect.fence!)
  }
  const kept = new Set(notes)
  for (const { mark, who } of effectsOf(calls, ['memory.put'])) {
    if (!kept.has(mark!)) found.push({ check, says: `the note ${mark} of ${who} is lost` })
  }
  return found
}

const keysOf = ({ type, lock, data }: Recorded) =>
  lock === null ? [] : [`${type} ${lock} ${String(data['fence'])}`]

/**
 * A number in a task that everybody adds to, each by the version it read: no addition that was
 * acknowledged is overwritten, and none is made up.
 */
export function checkCounter(calls: Call[], { tasks }: Final): Violation[] {
  const check = 'no update is lost'
  const counter = tasks.find(({ title }) => title === 'counter')
  if (!counter) return []
  const asks = calls.filter(({ op }) => op === 'task.update')
  const told = effectsOf(asks, ['task.update'])
  const settled = new Set(asks.flatMap((call) => (call.outcome === 'ok' ? [call.request] : [])))
  const unclear = new Set(
    asks.flatMap(({ outcome, request }) => {
      return outcome === 'unknown' && !settled.has(request) ? [request] : []
    }),
  )
  const found: Violation[] = []
  const values = told.map(({ value }) => value)
  if (new Set(values).size !== values.length) {
    found.push({ check, says: 'two additions to the counter got one number' })
  }
  const is = Number(counter.body)
  if (is < told.length || is > told.length + unclear.size) {
    const says = `the counter is ${is} after ${told.length} additions (${unclear.size} unclear)`
    found.push({ check, says })
  }
  return found
}
