import * as z from 'zod/mini'
import * as tables from '../../core/schema/memory.ts'
import * as pairs from '../../core/schema/search.ts'
import {
  columnsOf,
  count,
  list,
  maybe,
  orNull,
  page,
  seconds,
  shape,
  strings,
  text,
  time,
  unnamed,
  yes,
} from './shape.ts'

const named = () => ({ scope: text(), key: text() })
const kind = () => z.enum(['put', 'delete', 'merge', 'resolve'])
const conflictStatus = () => z.enum(['open', 'resolved', 'merged', 'replaced'])

const versionFields = () => ({
  ...columnsOf(tables.memory_version, ['id', 'memory_id', 'created_ms', 'expires_ms'], {
    parents: list(count()),
    kind: kind(),
  }),
  expires_at: orNull(time()),
})

export const version = shape(
  'MemoryVersion',
  'A version of a note; its text is null if pruned.',
  () => ({
    ...versionFields(),
    content: orNull(text()),
  }),
)

export const memory = shape('Memory', 'A shared note, and the versions that disagree.', () => ({
  ...named(),
  ...versionFields(),
  content: orNull(text()),
  siblings: list(version()),
  conflicts: strings(),
}))

export const put = shape('MemoryPut', 'The result of a put, and what it disagrees with.', () => ({
  ...named(),
  version: count(),
  written: yes(),
  conflict: orNull(
    z.strictObject({
      id: text(),
      status: conflictStatus(),
      strategy: text(),
      why: orNull(text()),
      ours: count(),
      theirs: count(),
      base: orNull(count()),
      with: version(),
    }),
  ),
}))

/** Whether it is disputed is told, and not by which versions. */
const INNER = ['id', 'heads', 'live', 'created_at', 'updated_ms', 'expires_ms'] as const
export const memories = page(() => ({
  ...columnsOf(tables.memory, INNER, {}),
  expires_at: orNull(time()),
  conflict: yes(),
}))

export const history = page(() => ({ ...versionFields(), head: yes() }))

export const pruned = unnamed(() => ({
  dry_run: yes(),
  items: list({
    ...named(),
    version: count(),
    why: z.enum(['deleted', 'expired', 'history', 'old', 'unsure']),
    versions: count(),
    bytes: count(),
  }),
  next: orNull(text()),
}))

const conflictFields = () =>
  columnsOf(tables.memory_conflict, ['memory_id', 'opened_ms'], { status: conflictStatus() })

/** Asked for by its id it comes whole, with both contents. */
export const conflicts = page(() => ({
  ...conflictFields(),
  sides: maybe(z.strictObject({ ours: version(), theirs: version() })),
  base_content: maybe(orNull(text())),
  draft: maybe(orNull(text())),
}))

export const resolved = unnamed(() => ({
  id: text(),
  ...named(),
  version: count(),
  parents: list(count()),
  kind: kind(),
  strategy: orNull(text()),
  open: count(),
}))

const alike = () =>
  orNull(z.strictObject({ ...named(), author: text(), updated_at: time(), excerpt: text() }))

export const duplicates = page(() => ({
  ...columnsOf(pairs.duplicate, ['a', 'b'], {
    label: orNull(z.enum(['contradicts'])),
    status: z.enum(['open', 'resolved']),
  }),
  a: alike(),
  b: alike(),
}))
export const duplicate = unnamed(() => ({
  id: text(),
  status: z.enum(['open', 'resolved']),
  action: orNull(text()),
}))

/** How it was found: without meaning there is a reason why. */
const searched = () => ({ modes: list(z.enum(['meaning', 'text'])), why: maybe(text()) })
const foundFields = () => ({
  ...named(),
  author: text(),
  age_seconds: seconds(),
  confidence: orNull(z.number()),
  disputed: yes(),
})

export const found = unnamed(() => ({
  ...searched(),
  items: list({
    ...foundFields(),
    version: count(),
    tags: strings(),
    score: z.number(),
    excerpt: text(),
  }),
  trust: text(),
}))

export const context = unnamed(() => ({
  ...searched(),
  items: list({ ...foundFields(), content: text(), cut: yes(), by_you: yes() }),
  tokens: count(),
  trust: text(),
}))

export const searchStatus = unnamed(() => ({
  notes: count(),
  embedded: count(),
  provider: orNull(text()),
  dimensions: orNull(count()),
  since: orNull(time()),
  waiting: count(),
  put_aside: count(),
  problems: list({
    kind: z.enum(['embed']),
    subject: text(),
    attempts: count(),
    error: orNull(text()),
    asked_at: time(),
  }),
}))
export const retried = unnamed(() => ({ retried: count() }))
