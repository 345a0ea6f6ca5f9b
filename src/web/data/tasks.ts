import { signal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask, pagesOf } from '../ask.ts'
import { Dirty, Repeated } from './asked.ts'
import { listen, type ShownEvent } from './live.ts'

export type BriefTask = AnswerOf<'task.peek'>['items'][number]

/** What a page keeps at most; beyond this, filters on the server are the better tool. */
const KEPT_MAX = 30_000
const PAGE = 1_000

/** Tasks by id. Read `changed` to be told when something in here is new. */
export const tasks = new Map<string, BriefTask>()
export const changed = signal(0)
/** Whether those that run have been asked for. */
export const runningKnown = signal(false)
export const loading = signal<'some' | 'all' | 'done' | 'more'>('some')

const dirty = new Dirty(async (ids) => keep((await ask('task.peek', { ids })).items))

listen({ events: noteTasks, reset: () => loadTasks() })

function noteTasks(events: ShownEvent[]): void {
  for (const { task, lock } of events) {
    const id = task ?? (lock?.startsWith('task:') ? lock.slice(5) : null)
    if (id !== null) dirty.add(id)
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

const sought = new Set<string>()

/** Called by what names these tasks: what is not here is asked for, once. */
export function wantTasks(ids: string[]): void {
  for (const id of ids) {
    if (tasks.has(id) || sought.has(id)) continue
    sought.add(id)
    dirty.add(id)
  }
}

/** What runs, at once; all others when a view asks for them. */
const asking = new Repeated(async () => {
  const { items } = await ask('task.peek', { status: 'in_progress', limit: PAGE })
  tasks.clear()
  keep(items)
  runningKnown.value = true
  if (loading.value !== 'some') await loadAll()
})
export const loadTasks = () => asking.soon()

export function wantAll(): void {
  if (loading.value !== 'some') return
  loading.value = 'all'
  askingAll.soon()
}

const askingAll = new Repeated(loadAll)

async function loadAll(): Promise<void> {
  loading.value = 'all'
  for await (const { items, next } of pagesOf('task.peek', { limit: PAGE })) {
    keep(items)
    if (next !== null && tasks.size >= KEPT_MAX) return void (loading.value = 'more')
  }
  loading.value = 'done'
}

/** As many as anybody reads through. */
const FOUND_MAX = 500
let search = 0

/** What is not here, or not yet, is found by the server; a newer search ends this one. */
export async function findTasks(text: string, project: string): Promise<void> {
  const mine = (search += 1)
  const wanted = { ...(text !== '' && { text }), ...(project !== '' && { project }) }
  let found = 0
  for await (const { items } of pagesOf('task.peek', { ...wanted, limit: FOUND_MAX })) {
    if (mine !== search) return
    keep(items)
    found += items.length
    if (found >= FOUND_MAX) return
  }
}

export const running = () => [...tasks.values()].filter(({ status }) => status === 'in_progress')
