import { type Event, isEnding } from '../../src/core/event.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import type { Deed } from './leader_rig.ts'
import { groupBy } from '../../lab/rig/history.ts'

const PAGE = 5_000

async function eventsOf(store: Store): Promise<Event[]> {
  const all: Event[] = []
  for (;;) {
    const page = await store.events(all.at(-1)?.position ?? 0, PAGE)
    if (page.length === 0) return all
    all.push(...page)
  }
}

/** No lock is granted while another lease of it is in force, and fences rise. */
function wrongTurns(events: Event[]): string[] {
  const wrong: string[] = []
  const held = new Map<string, number>()
  let last = 0
  for (const event of events) {
    const { type, lock, data } = event
    const { fence, released } = data as { fence?: number; released?: boolean }
    if (lock === null || fence === undefined) continue
    if (type === 'lease.granted' || type === 'task.claimed') {
      if (held.has(lock))
        wrong.push(`${lock} was given as ${fence} while ${held.get(lock)} held it`)
      if (fence <= last) wrong.push(`${lock} was given as ${fence} after ${last}`)
      held.set(lock, fence)
      last = fence
    } else if (isEnding(event) || released) held.delete(lock)
  }
  return wrong
}

/** What must not be, of what was acknowledged and of what is in the store; empty if all is well. */
export async function wrongEffects(store: Store, deeds: Deed[]): Promise<string[]> {
  const events = await eventsOf(store)
  const tasks = await store.read((view) => [...view.scan('tasks', '')])
  const wrong = wrongTurns(events)
  const byTitle = groupBy(tasks, ({ title }) => title)
  for (const [title, found] of byTitle) {
    if (found.length > 1) wrong.push(`${title} was made ${found.length} times`)
  }
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const claims = groupBy(
    events.filter(({ type }) => type === 'task.claimed'),
    ({ task }) => task,
  )
  const granted = new Set(
    events.flatMap(({ type, lock, data }) =>
      type === 'lease.granted' ? `${lock} ${(data as { fence: number }).fence}` : [],
    ),
  )
  for (const { did, title, task, name, fence, code } of deeds) {
    if (code !== undefined) wrong.push(`${did} ${title ?? task} was refused as ${code}`)
    if (did === 'made' && !byTitle.has(title!)) wrong.push(`${title} is lost`)
    if (did === 'held' && !granted.has(`${name} ${fence}`)) wrong.push(`${name} ${fence} is lost`)
    if (did !== 'done') continue
    if (byId.get(task!)?.status !== 'done') wrong.push(`${task} was done, and is not`)
    if (claims.get(task!)?.length !== 1) wrong.push(`${task} was claimed more than once`)
  }
  return wrong
}
