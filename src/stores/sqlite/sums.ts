import { type AnyRow, KEYS, type TableName, TABLES, SCHEMA } from '../../core/schema/schema.ts'
import { planted } from '../../core/planted.ts'
import type { Head } from '../port.ts'
import { CHECKED } from '../invariants.ts'
import { Unreadable } from './codec.ts'
import type { Database } from './driver.ts'
import { Statements } from './statements.ts'

/**
 * What the rows of a table add up to, kept in the transaction that changes them. A row that was
 * edited, deleted or invented by anything but us leaves the sum behind, and `db check` finds it.
 *
 * Every value that is not null adds a number made from its row's key, its column and itself; so a
 * change costs as many numbers as it has columns, and rows may come and go in any order. 32 bits
 * are enough against accidents; they are no protection against somebody who computes them too.
 */
type Sum = [rows: number, sum: number]
type Sums = Partial<Record<TableName, Sum>>

export const isSummed = (table: TableName) => !SCHEMA[table].isMadeAgain

const SUMMED = TABLES.filter(isSummed)

const NAMES = Object.fromEntries(
  TABLES.map((table) => {
    const columns = Object.entries(SCHEMA[table].columns)
    return [table, columns.filter(([, { flags }]) => !flags.isUnsummed).map(([name]) => name)]
  }),
) as unknown as Record<TableName, (keyof AnyRow)[]>

/** Times for people decide nothing: whether there is one is all that counts of them. */
const IS_TIME = Object.fromEntries(
  TABLES.map((table) => [table, NAMES[table].map((name: string) => name.endsWith('_at'))]),
) as Record<TableName, boolean[]>

const double = new Float64Array(1)
const halves = new Int32Array(double.buffer)

function textHash(text: string, seed: number): number {
  let hash = seed
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** The number that one value adds; what is null, false or missing adds nothing. */
function numberOf(row: number, column: number, value: unknown): number {
  if (value === null || value === undefined || value === false) return 0
  let hash = row ^ Math.imul(column + 1, 0x9e3779b1)
  if (typeof value === 'string') hash = textHash(value, hash)
  else if (typeof value === 'object') hash = textHash(JSON.stringify(value), hash)
  else if (value === true) hash = Math.imul(hash ^ 1, 0x01000193)
  else {
    double[0] = value as number
    hash = Math.imul(hash ^ halves[0]!, 0x01000193)
    hash = Math.imul(hash ^ halves[1]!, 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}

/** What comes before a row that is new, or is left of one that goes. */
const NOTHING = Object.fromEntries(
  TABLES.map((table) => [table, Object.fromEntries(NAMES[table].map((name) => [name, null]))]),
) as unknown as Record<TableName, AnyRow>

const sumOf = (table: TableName, row: AnyRow) => stepOf(table, NOTHING[table], row)

/** What a row adds more, or less, than it did before: of equal columns nothing is computed. */
function stepOf(table: TableName, before: AnyRow, after: AnyRow): number {
  const seed = textHash(after[KEYS[table] as keyof AnyRow], 0x811c9dc5)
  const names = NAMES[table]
  const isTime = IS_TIME[table]
  let step = 0
  for (let i = 0; i < names.length; i += 1) {
    let was: unknown = before[names[i]!]
    let is: unknown = after[names[i]!]
    if (was === is) continue
    if (isTime[i]) {
      was = was !== null
      is = is !== null
    }
    step = (step + numberOf(seed, i, is) - numberOf(seed, i, was)) | 0
  }
  return step
}

/** Everything in the head but the boot: `db copy` closes a store by that alone. */
function headSum(head: Head): number {
  const { epoch, fences, task_number, position, hash, offset_ms, last_ms } = head
  const values = [epoch, fences, task_number, position, hash, offset_ms, last_ms]
  return values.reduce<number>((sum, value, i) => (sum + numberOf(0, i, value)) | 0, 0)
}

/** The sums of one store, as they are after the changes of this transaction. */
export class RowSums {
  constructor(private readonly sums: Sums) {}

  /** `before` is the row in the store, `after` what it becomes; undefined or null where none is. */
  change(table: TableName, before: AnyRow | null | undefined, after: AnyRow | null): void {
    if (!isSummed(table) || (!before && !after)) return
    const sum = (this.sums[table] ??= [0, 0])
    const step = after ? stepOf(table, before ?? NOTHING[table], after) : -sumOf(table, before!)
    sum[1] = (sum[1] + step) | 0
    if (!before) sum[0] += 1
    else if (!after) sum[0] -= 1
  }

  /** To be kept with that head. */
  textFor(head: Head): string {
    return JSON.stringify({ head: headSum(head), tables: this.sums })
  }
}

interface Kept {
  head: number
  tables: Sums
}

/** What was kept with the newest commit; undefined where that makes no sense. */
function keptSums(statements: Statements): Kept | undefined {
  const row = statements.sql('SELECT sums FROM head').get()
  try {
    const kept = JSON.parse(String(row?.['sums'])) as Kept
    return typeof kept.head === 'number' && typeof kept.tables === 'object' ? kept : undefined
  } catch {
    return undefined
  }
}

/** Refuses (`damaged`) a head that is not the one that was committed. */
export function sumsWith(statements: Statements, head: Head): RowSums {
  const kept = keptSums(statements)
  if (kept?.head === headSum(head)) return new RowSums(kept.tables)
  throw new Unreadable('its head is not what was written with the newest commit')
}

type SeeRow = (table: TableName, row: AnyRow) => void

/** Adds up all rows of a table, as they are; and whether what follows from each does. */
function addUp(
  statements: Statements,
  table: TableName,
  see?: SeeRow,
): { its: Sum; follows: boolean } {
  let [rows, sum, follows] = [0, 0, true]
  for (const { row, isFollowed } of statements.all(table)) {
    see?.(table, row)
    rows += 1
    sum = (sum + sumOf(table, row)) | 0
    follows &&= isFollowed
  }
  return { its: [rows, sum], follows }
}

/**
 * Takes all rows for right as they are. For those who change rows by other means than a commit, in
 * the same transaction: a migration, a copy, a restore.
 */
export function sumAnew(db: Database): void {
  const statements = new Statements(db)
  const sums: Sums = {}
  for (const table of SUMMED) {
    const { its } = addUp(statements, table)
    if (its[0] > 0) sums[table] = its
  }
  keep(db, statements, sums)
}

/** Takes the head for right as it is; the rows keep their sums. */
export function sumHeadAnew(db: Database): void {
  const statements = new Statements(db)
  const kept = keptSums(statements)
  if (kept) keep(db, statements, kept.tables)
}

function keep(db: Database, statements: Statements, sums: Sums): void {
  const text = new RowSums(sums).textFor(statements.head())
  db.prepare('UPDATE head SET sums = ?').run(text)
}

/** Tables whose rows do not add up to what was kept; `see` is shown all rows there are. */
export function* strangeTables(statements: Statements, see: SeeRow): Generator<string> {
  const kept = keptSums(statements)
  if (!kept) yield 'what the rows add up to is not known any more'
  else if (kept.head !== headSum(statements.head())) yield 'the head is not as it was written'
  for (const table of new Set([...CHECKED, ...SUMMED])) {
    const { its, follows } = addUp(statements, table, see)
    const [rows, sum] = its
    if (!isSummed(table) || !kept || planted('S11')) continue
    const [rows_kept, sum_kept] = kept.tables[table] ?? [0, 0]
    if (rows === rows_kept && sum === sum_kept && follows) continue
    const counts = rows === rows_kept ? '' : ` (${rows} are there, ${rows_kept} were written)`
    yield `rows of ${table} are not as they were written${counts}`
  }
}
