import type { Changes } from '../../core/schema/schema.ts'
import type { Hit } from '../../core/memory/search.ts'
import type { Finder, MemoryTally, Progress, TextAsk, VectorRow } from '../port.ts'
import { COMMON_SCORE, NOTES_MAX, notesIn, rankWords, type WordHits } from '../word_ranks.ts'
import type { Look, Statements } from './statements.ts'

const HAS_WORD = `SELECT rowid AS number FROM memory_words WHERE memory_words MATCH ?
  ORDER BY rowid DESC LIMIT ?`
/** A hit in the key counts four times, one in the tags twice. */
const RANK_WORD = `SELECT rowid AS number, -rank AS score FROM memory_words
  WHERE memory_words MATCH ? AND rank MATCH 'bm25(0.0, 4.0, 2.0, 1.0)'`
/** The same of one scope: a phrase of the name is also found in longer names. */
const HAS_WITHIN = `SELECT r.number FROM memory_words
  JOIN memory_row AS r ON r.number = memory_words.rowid
  WHERE memory_words MATCH ?1 AND r.id > ?3 || char(10) AND r.id < ?3 || char(11)
  ORDER BY r.number DESC LIMIT ?2`
const IDS = `SELECT number, id FROM memory_row
  WHERE number IN (SELECT value FROM json_each(?))`

const FORGET_WORDS = `DELETE FROM memory_words
  WHERE rowid IN (SELECT number FROM memory_row WHERE id IN (SELECT value FROM json_each(?)))`
const FORGET_ROWS = `DELETE FROM memory_row WHERE id IN (SELECT value FROM json_each(?))`
const ADD_ROWS = `INSERT INTO memory_row (id) SELECT id FROM memory
  WHERE id IN (SELECT value FROM json_each(?)) AND live = 1`
const ADD_WORDS = `INSERT INTO memory_words (rowid, scope, key, tags, content)
  SELECT number, scope, key, tags,
    (SELECT group_concat(substr(content, 1, 65536), char(10)) FROM json_each(heads) AS h
       JOIN memory_text AS t ON t.id = memory.id || char(10) || h.value)
  FROM memory_row JOIN memory USING (id) WHERE id IN (SELECT value FROM json_each(?))`

const VECTORS = `SELECT v.id, m.scope, x.bytes FROM
  (SELECT id, scope, heads FROM memory WHERE live = 1 AND id > ?2 ORDER BY id LIMIT ?3) AS m
  CROSS JOIN json_each(m.heads) AS h
  CROSS JOIN memory_version AS v ON v.id = m.id || char(10) || h.value
  LEFT JOIN vector AS x ON x.key = ?1 || char(10) || v.hash WHERE v.kept = 1 ORDER BY m.id`
const VECTORS_OF = `SELECT v.id, m.scope, x.bytes FROM json_each(?2) AS each
  CROSS JOIN memory AS m ON m.id = each.value AND m.live = 1
  CROSS JOIN json_each(m.heads) AS h
  CROSS JOIN memory_version AS v ON v.id = m.id || char(10) || h.value
  LEFT JOIN vector AS x ON x.key = ?1 || char(10) || v.hash WHERE v.kept = 1`
const TALLY = `SELECT (SELECT count(*) FROM memory WHERE live = 1) AS notes,
  (SELECT count(*) FROM memory WHERE has_versions = 1 AND (updated_ms, id) > (?1, ?2)) AS behind,
  (SELECT count(*) FROM note_attempt WHERE state = 'waiting') AS waiting,
  (SELECT count(*) FROM note_attempt WHERE state = 'dead') AS dead`

const NONE: MemoryTally = { notes: 0, behind: 0, waiting: 0, dead: 0 }
const IDS_PER_STEP = 256

/** Brings the index of words in step with notes that were written in this transaction. */
export function indexWords(statements: Statements, changes: Changes): void {
  const notes = notesIn(changes)
  if (notes.length === 0) return
  const ids = JSON.stringify(notes)
  // What is written gets a new number, above all others: the newest are looked at first.
  for (const text of [FORGET_WORDS, FORGET_ROWS, ADD_ROWS, ADD_WORDS]) statements.sql(text).run(ids)
}

/** A word is quoted, so nothing in it is syntax; `"` is no letter, but better twice than wrong. */
const quoted = (word: string) => `"${word.replaceAll('"', '""')}"`
const inText = (word: string) => `{key tags content} : ${quoted(word)}`

/** Finds notes on a connection for reading, opened when first needed. */
export class SqliteFinder implements Finder {
  constructor(private readonly looked: Look) {}

  async searchText({ terms, scope, apart, limit }: TextAsk): Promise<Hit[]> {
    if (terms.length === 0) return []
    const found = await this.looked((statements) => {
      const within = scope === undefined ? '' : ` AND scope : ${quoted(scope)}`
      const notes = apart ? { within, scope: scope! } : undefined
      const words = terms.map((term) =>
        notes ? hitsApart(statements, term, notes) : hitsOf(statements, term, within),
      )
      const common = terms.filter((_, i) => words[i]!.isCommon)
      const all = common.length > 1 ? common.map(inText).join(' AND ') + within : undefined
      const ranked = rankWords(words, all === undefined ? [] : numbersOf(statements, all))
      return named(statements, ranked, scope, limit)
    })
    return found ?? []
  }

  async vectors(provider: string, after: string, limit: number): Promise<VectorRow[]> {
    return rows(await this.looked((s) => s.sql(VECTORS).all(provider, after, limit)))
  }

  async vectorsOf(provider: string, memory_ids: string[]): Promise<VectorRow[]> {
    const ids = JSON.stringify(memory_ids)
    return rows(await this.looked((s) => s.sql(VECTORS_OF).all(provider, ids)))
  }

  async tallyMemory({ cursor, cursor_ms }: Progress): Promise<MemoryTally> {
    const found = await this.looked((s) => s.sql(TALLY).all(cursor_ms, cursor))
    return rows<MemoryTally>(found)[0] ?? NONE
  }
}

const rows = <T>(found: unknown[] | undefined): T[] => (found ?? []) as T[]

function numbersOf(statements: Statements, match: string): string[] {
  const found = rows<{ number: number }>(statements.sql(HAS_WORD).all(match, NOTES_MAX))
  return found.map(({ number }) => String(number))
}

/**
 * Ranking counts every note that has the word, so it is only done for one that few have: those are
 * counted first, and no further than that. Notes are known by their numbers here.
 */
function hitsOf(statements: Statements, term: string, within: string): WordHits {
  const match = inText(term)
  const few = statements.sql(HAS_WORD).all(match, NOTES_MAX + 1)
  if (few.length <= NOTES_MAX) {
    const found = rows<{ number: number; score: number }>(statements.sql(RANK_WORD).all(match))
    const hits = found.map(({ number, score }) => ({ id: String(number), score }))
    return { hits, isCommon: false }
  }
  const some = numbersOf(statements, match + within)
  return { hits: some.map((id) => ({ id, score: COMMON_SCORE })), isCommon: true }
}

/** By which part of a note has the word. */
const WEIGHTS = { key: 4, tags: 2, content: 1 }

/** Ranks by what is within one scope alone: how rare a word is there, and where it stands. */
function hitsApart(
  statements: Statements,
  term: string,
  { within, scope }: { within: string; scope: string },
): WordHits {
  const has = (match: string) =>
    rows<{ number: number }>(statements.sql(HAS_WITHIN).all(match + within, NOTES_MAX, scope))
  const scores = new Map<number, number>()
  for (const [part, weight] of Object.entries(WEIGHTS)) {
    for (const { number } of has(`{${part}} : ${quoted(term)}`)) {
      scores.set(number, (scores.get(number) ?? 0) + weight)
    }
  }
  const isCommon = scores.size >= NOTES_MAX
  const all = has(`{scope} : ${quoted(scope)}`).length
  const rarity = Math.log(1 + (all - scores.size + 0.5) / (scores.size + 0.5))
  const hits = [...scores].map(([number, score]) => {
    return { id: String(number), score: isCommon ? COMMON_SCORE : score * Math.max(rarity, 0.1) }
  })
  return { hits, isCommon }
}

/** From numbers to ids, the best first, as far as needed. */
function named(
  statements: Statements,
  ranked: Hit[],
  scope: string | undefined,
  limit: number,
): Hit[] {
  const hits: Hit[] = []
  for (let from = 0; from < ranked.length && hits.length < limit; from += IDS_PER_STEP) {
    const part = ranked.slice(from, from + IDS_PER_STEP)
    const numbers = JSON.stringify(part.map(({ id }) => Number(id)))
    const found = rows<{ number: number; id: string }>(statements.sql(IDS).all(numbers))
    const ids = new Map(found.map(({ number, id }) => [String(number), id]))
    for (const { id: number, score } of part) {
      const id = ids.get(number)
      if (id === undefined || (scope !== undefined && !id.startsWith(`${scope}\n`))) continue
      hits.push({ id, score })
    }
  }
  return hits.slice(0, limit)
}
