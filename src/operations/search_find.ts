import type { Caller } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { fuse, type Hit, termsOf } from '../core/memory/search.ts'
import { notesSeen, scopesSeen } from '../core/sight.ts'
import { isScoped } from '../core/token_scope.ts'
import type { View } from '../core/view.ts'
import type { Meant } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'

export const MODES = ['fused', 'text', 'meaning'] as const
type Mode = (typeof MODES)[number]

interface Asked {
  query: string
  scopes: string[] | undefined
  /** Each scope is ranked by what is in it alone: else a rank would tell of what is elsewhere. */
  apart: boolean
  mode: Mode
  /** How many of each list are looked at. */
  pool: number
}

export interface FoundNotes {
  hits: Hit[]
  /** The ways that were used, and why one that was asked for was not. */
  modes: ('text' | 'meaning')[]
  why: string | null
  /** Notes that are about this, as far as meaning tells; null where all that was found counts. */
  near: ReadonlySet<string> | null
}

/** Why there is no meaning where nobody has seen to it, or this program has no model. */
export const NOT_EMBEDDED = 'meaning needs a running server (leasehold up), with embeddings on'

const NOTHING_NEAR = 'no note here has been embedded yet, or none is near in meaning'

const best = (hits: Hit[], limit: number) =>
  hits.toSorted((a, b) => b.score - a.score).slice(0, limit)

/**
 * Notes by words, by meaning, or by both. Words can always be looked for; meaning where a model is
 * at hand. Refuses `unavailable` when meaning alone was asked for and cannot be told.
 */
export async function findNotes(store: Store, asked: Asked): Promise<FoundNotes> {
  const { mode } = asked
  const [text, meaning] = await Promise.all([
    mode === 'meaning' ? [] : searchText(store, asked),
    mode === 'text' ? NOT_EMBEDDED : searchMeaning(store, asked),
  ])
  if (mode === 'text') return { hits: text, modes: ['text'], why: null, near: null }
  if (typeof meaning === 'string') {
    if (mode === 'meaning') throw withoutMeaning(meaning)
    return { hits: text, modes: ['text'], why: meaning, near: null }
  }
  const { hits, floor } = meaning
  // A search by meaning alone wants the nearest notes, however far, and says how near they are.
  if (mode === 'meaning') return { hits, modes: ['meaning'], why: null, near: null }
  // Nothing was compared: to say that meaning was looked at would be untrue.
  if (hits.length === 0) return { hits: text, modes: ['text'], why: NOTHING_NEAR, near: null }
  const near = new Set(hits.filter(({ score }) => score >= floor).map(({ id }) => id))
  return { hits: fuse({ text, meaning: hits }), modes: ['text', 'meaning'], why: null, near }
}

/** Where a caller may look, of the scopes that it named: it finds what is there and in no other. */
export async function whereFor(
  store: Store,
  scopes: string[] | undefined,
  caller: Caller,
): Promise<Pick<Asked, 'scopes' | 'apart'>> {
  if (!isScoped(caller)) return { scopes, apart: false }
  const seen = (view: View) =>
    scopes?.filter((scope) => notesSeen(view, scope, caller)) ?? scopesSeen(view, caller)
  return { scopes: await store.read(seen), apart: true }
}

async function searchText(store: Store, { query, scopes, apart, pool }: Asked): Promise<Hit[]> {
  const { finder } = store
  const terms = termsOf(query)
  if (!finder || terms.length === 0) return []
  const lists = (scopes ?? [undefined]).map((scope) =>
    finder.searchText({ terms, scope, apart, limit: pool }),
  )
  return best((await Promise.all(lists)).flat(), pool)
}

async function searchMeaning(
  store: Store,
  { query, scopes, pool }: Asked,
): Promise<Meant | string> {
  const { meaning } = store
  if (!meaning) return NOT_EMBEDDED
  return meaning.search(query, scopes, pool)
}

function withoutMeaning(why: string): Refusal {
  return new Refusal('unavailable', `Notes cannot be found by meaning: ${why}`, {
    next: 'Search by words: mode text, or leave the mode out.',
    details: why === NOT_EMBEDDED ? { lasting: true } : {},
  })
}
