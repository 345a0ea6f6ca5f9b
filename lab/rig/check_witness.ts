import type { Violation } from './check_fences.ts'

/** What a command wrote about itself while it ran, with one write to a common file. */
export interface Seen {
  what: 'begin' | 'end'
  /** What excludes others: `user alice`, `lock build`. */
  key: string
  /** The run of a task, or the lock. */
  run: string
  fence: number
  pid: string
  /** Others with the same key whose processes it saw alive when it began. */
  beside: string[]
}

export function seenIn(text: string): Seen[] {
  return text.split('\n').flatMap((line) => {
    const [what, key, run, fence, pid, ...beside] = line.split(' ')
    if ((what !== 'begin' && what !== 'end') || pid === undefined) return []
    return [{ what, key: key!, run: run!, fence: Number(fence), pid, beside }]
  })
}

/** Commands that must exclude each other never saw another alive, and began once per fence. */
export function checkWitness(seen: Seen[]): Violation[] {
  const found: Violation[] = []
  const begun = new Map<string, Seen>()
  const highest = new Map<string, number>()
  for (const each of seen) {
    if (each.what === 'end') continue
    const { key, run, fence, pid, beside } = each
    const says = `${run} (${key}, process ${pid}, fence ${fence})`
    if (beside.length > 0) {
      const check = 'limits are never exceeded'
      found.push({ check, says: `${says} began while ${beside.join(', ')} lived` })
    }
    const before = begun.get(`${run}#${fence}`)
    begun.set(`${run}#${fence}`, each)
    if (before) found.push({ check: 'one start per fence', says: `${says} began twice` })
    const last = highest.get(key) ?? 0
    if (fence < last) {
      found.push({ check: 'fences rise', says: `${says} began after fence ${last} had begun` })
    }
    highest.set(key, Math.max(last, fence))
  }
  return found
}

/** Every task of the queue that is done was seen to end by the command itself. */
export function checkRuns(seen: Seen[], tasks: { id: string; status: string; title: string }[]) {
  const ended = new Set(seen.flatMap(({ what, run }) => (what === 'end' ? [taskOf(run)] : [])))
  return tasks.flatMap(({ id, status, title }): Violation[] => {
    if (!title.startsWith('queued') || status !== 'done' || ended.has(id)) return []
    return [{ check: 'no task lost, invented or ended twice', says: `${id} is done by nobody` }]
  })
}

/** A run is named after its task: `42.1` is the first of 42. */
const taskOf = (run: string) => run.replace(/\.\d+$/, '')
