import { signal } from '@preact/signals'
import { isRefusal } from '../../core/refusal.ts'
import { ask } from '../ask.ts'
import { Dirty } from './asked.ts'

/** Reasons change without an event of the task: they are asked for again after this. */
const STALE_MS = 10_000
const KEPT_MAX = 2_000

interface Told {
  says: string
  at_ms: number
}

/** Why tasks wait, in the words of `explain`, for those that somebody looks at. */
const whys = signal(new Map<string, Told>())

const dirty = new Dirty(async (ids) => {
  const told = await Promise.all(ids.map(async (id) => [id, await tellWhy(id)] as const))
  const kept = [...whys.value].slice(-KEPT_MAX)
  whys.value = new Map([...kept, ...told])
})

async function tellWhy(id: string): Promise<Told> {
  try {
    const { sentence } = await ask('task.explain', { id })
    // The row names the task already.
    const says = sentence.replace(`Task ${id} `, '').replace(/^waits because /, '')
    return { says, at_ms: Date.now() }
  } catch (error) {
    if (!isRefusal(error, 'not_found')) throw error
    return { says: '', at_ms: Date.now() }
  }
}

/** Called by what shows these tasks. */
export function wantWhy(ids: string[]): void {
  const before = Date.now() - STALE_MS
  for (const id of ids) if ((whys.peek().get(id)?.at_ms ?? 0) < before) dirty.add(id)
}

export const whyOf = (id: string) => whys.value.get(id)?.says ?? ''
