import type { Changes } from '../../core/schema/schema.ts'
import type { Hit } from '../../core/memory/search.ts'
import type { Finder, MemoryTally, Progress, TextAsk, VectorRow } from '../port.ts'
import { COMMON_SCORE, NOTES_MAX, notesIn, rankWords, type WordHits } from '../word_ranks.ts'
import { textArray } from './codec.ts'
import type { PostgresRead } from './counter.ts'
import type { Connection } from './driver.ts'
import type { PostgresStatements } from './statements.ts'

/** Words are found by an index that can only be read as a bitmap, which sessions have off. */
const BEGIN = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_bitmapscan = on'

/** Brings the index of words in step with notes that were written in this transaction. */
export async function indexWords(
  db: Connection,
  statements: PostgresStatements,
  changes: Changes = {},
): Promise<void> {
  const notes = notesIn(changes)
  if (notes.length === 0) return
  const ids = textArray(notes)
  await db.query(statements.forgetWords, [ids])
  await db.query(statements.addWords, [ids])
}

/** Finds notes, on connections for reading. */
export class PostgresFinder implements Finder {
  constructor(
    private readonly read: PostgresRead,
    private readonly statements: PostgresStatements,
  ) {}

  searchText({ terms, scope, apart, limit }: TextAsk): Promise<Hit[]> {
    const { hasWord, someNotes } = this.statements
    return this.read(
      async (db) => {
        await db.run(BEGIN)
        try {
          const [sum] = await db.query(someNotes, [10 * NOTES_MAX, apart ? scope! : null])
          const values = [textArray(terms), scope ?? null, NOTES_MAX + 1]
          const found = await db.query(hasWord, values, 'leasehold_has_word')
          const words = terms.map((_, i) => {
            const hits = found.filter(([word]) => Number(word) === i + 1)
            return ranked(
              hits.map(([, id, score]) => ({ id: id!, score: Number(score) })),
              Number(sum?.[0]),
            )
          })
          return rankWords(words, []).slice(0, limit)
        } finally {
          await db.run('ROLLBACK').catch(() => undefined)
        }
      },
      () => [],
    )
  }

  vectors(provider: string, after: string, limit: number): Promise<VectorRow[]> {
    return this.vectorsBy(this.statements.vectors, [provider, after, limit])
  }

  vectorsOf(provider: string, memory_ids: string[]): Promise<VectorRow[]> {
    return this.vectorsBy(this.statements.vectorsOf, [provider, textArray(memory_ids)])
  }

  private vectorsBy(text: string, values: (string | number)[]): Promise<VectorRow[]> {
    return this.read(
      async (db) => {
        const found = await db.query(text, values)
        return found.map(([id, scope, bytes]) => {
          const raw = bytes ? Buffer.from(bytes.slice(2), 'hex') : null
          return { id: id!, scope: scope!, bytes: raw }
        })
      },
      () => [],
    )
  }

  tallyMemory({ cursor, cursor_ms }: Progress): Promise<MemoryTally> {
    return this.read(
      async (db) => {
        const [row] = await db.query(this.statements.tallyMemory, [cursor_ms, cursor])
        return JSON.parse(row![0]!) as MemoryTally
      },
      () => ({ notes: 0, behind: 0, waiting: 0, dead: 0 }),
    )
  }
}

/** A rare word says more than one that many notes have; PostgreSQL's ranks do not know that. */
function ranked(hits: Hit[], notes: number): WordHits {
  if (hits.length > NOTES_MAX) {
    return { hits: hits.map(({ id }) => ({ id, score: COMMON_SCORE })), isCommon: true }
  }
  const rarity = Math.log(1 + (notes - hits.length + 0.5) / (hits.length + 0.5))
  return { hits: hits.map(({ id, score }) => ({ id, score: score * rarity })), isCommon: false }
}
