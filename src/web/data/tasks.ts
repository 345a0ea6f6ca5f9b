import { signal } from '@preact/signals'
import type { OutputOf } from '../../client/calls.ts'
import { ask } from '../ask.ts'
import { Repeated } from './asked.ts'
import { listen, type ShownEvent } from './live.ts'

export type BriefTask = OutputOf<'task.peek'>['items'][number]

/** What a page keeps at most; beyond this, filters on the server are the better tool. */
const KEPT_MAX = 30_000
const PAGE = 1_000
const NAMED_MAX = 100

/** Tasks by id. Read `changed` to be told when something in here is new. */
export const tasks = new Map<string, BriefTask>()
export const changed = signal(0)
export const loading = signal<'some' | 'all' | 'done' | 'more'>('some')

const dirty = new Set<string>()
const asking = new Repeated(askForDirty)

listen({ events: noteTasks, reset: () => void loadTasks() })

function noteTasks(events: ShownEvent[]): void {
  for (const { task, lock } of events) {
    const id = task ?? (lock?.startsWith('task:') ? lock.slice(5) : null)
    if (id !== null) dirty.add(id)
  }
  if (dirty.size > 0) asking.soon()
}

/** Only what something happened to is asked for, many at a time. */
async function askForDirty(): Promise<void> {
  while (dirty.size > 0) {
    const ids = [...dirty].slice(0, NAMED_MAX)
    for (const id of ids) dirty.delete(id)
    const { items } = await ask('task.peek', { ids }).catch((error: unknown) => {
      for (const id of ids) dirty.add(id)
      throw error
    })
    keep(items)
  }
}

function keep(items: BriefTask[]): void {
  for (const task of items) {
    const known = tasks.get(task.id)
    // An answer that was overtaken by a newer one changes nothing.
    if (!known || known.version <= task.version) tasks.set(task.id, task)
  }
  changed.value += 1
}

/** What runs, at once; all others when a view asks for them. */
export async function loadTasks(): Promise<void> {
  tasks.clear()
  const { items } = await ask('task.peek', { status: 'in_progress', limit: PAGE })
  keep(items)
  if (loading.value !== 'some') await loadAll()
}

export function wantAll(): void {
  if (loading.value === 'some') void loadAll()
}

async function loadAll(): Promise<void> {
  loading.value = 'all'
  let after: string | null = null
  do {
    const page: OutputOf<'task.peek'> = await ask('task.peek', {
      limit: PAGE,
      ...(after !== null && { after }),
    })
    keep(page.items)
    after = page.next
  } while (after !== null && tasks.size < KEPT_MAX)
  loading.value = after === null ? 'done' : 'more'
}

/** As many as anybody reads through. */
const FOUND_MAX = 500
let search = 0

/** What is not here, or not yet, is found by the server; a newer search ends this one. */
export async function findTasks(text: string, project: string): Promise<void> {
  const mine = (search += 1)
  const wanted = { ...(text !== '' && { text }), ...(project !== '' && { project }) }
  let after: string | null = null
  let found = 0
  do {
    const page: OutputOf<'task.peek'> = await ask('task.peek', {
      ...wanted,
      limit: FOUND_MAX,
      ...(after !== null && { after }),
    })
    if (mine !== search) return
    keep(page.items)
    found += page.items.length
    after = page.next
  } while (after !== null && found < FOUND_MAX)
}

export const running = () => [...tasks.values()].filter(({ status }) => status === 'in_progress')
