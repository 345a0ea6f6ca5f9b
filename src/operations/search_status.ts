import { retryDead } from '../core/memory/background.ts'
import type { BackgroundJob } from '../core/memory/search_rows.ts'
import * as answers from './answers/memory.ts'
import * as f from './fields.ts'
import { operation } from './operation.ts'

const DEAD_MAX = 20
const RETRIED_MAX = 1_000

function showDead({ kind, subject, attempts, error, asked_at }: BackgroundJob) {
  return { kind, subject: subject.replaceAll('\n', ' '), attempts, error, asked_at }
}

export const status = operation({
  name: 'memory.status',
  effect: 'read',
  role: 'viewer',
  touches: 'whole',
  refuses: ['unavailable'],
  needs: 'database',
  doc: 'How many notes are embedded, what background work waits, and what was put aside and why.',
  input: {},
  output: answers.searchStatus,
  command: 'memory status',
  lookup: async (store) => {
    const embedding = await store.read((view) => view.get('embedding', 'embedding'))
    const tally = await store.finder?.tallyMemory(embedding?.cursor ?? null)
    // A provider and the count of its notes belong together, even if both are a moment old.
    return { tally, now: embedding }
  },
  decide: (view, _input, _caller, _id, found) => {
    const { notes = 0, behind = 0, waiting = 0, embedding = 0, dead = 0 } = found?.tally ?? {}
    const now = found?.now
    const embedded = now ? Math.max(0, notes - behind - embedding) : 0
    return {
      notes,
      embedded,
      provider: now?.provider ?? null,
      dimensions: now?.dimensions ?? null,
      since: now?.since_at ?? null,
      waiting: waiting + behind,
      put_aside: dead,
      problems: [...firstOf(view.scan('background_jobs_in', 'dead'))].map(showDead),
    }
  },
})

function* firstOf<T>(rows: Iterable<T>): Generator<T> {
  let left = DEAD_MAX
  for (const row of rows) {
    if (left-- === 0) return
    yield row
  }
}

export const retry = operation({
  name: 'memory.retry',
  effect: 'write',
  role: 'admin',
  touches: 'whole',
  refuses: ['unavailable'],
  needs: 'database',
  doc: 'Retry background work that was put aside.',
  input: { request_id: f.requestId },
  output: answers.retried,
  command: 'memory retry',
  decide: (view, _input, caller) => ({ retried: retryDead(view, RETRIED_MAX, caller) }),
})

export type ShownStatus = ReturnType<(typeof status)['decide']>
