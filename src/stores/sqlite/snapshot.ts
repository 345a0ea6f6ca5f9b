import type { Cursor } from '../../core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Base, Head } from '../port.ts'
import { HEAD } from '../writer/chain.ts'
import type { Statements } from './statements.ts'

/** The committed rows as one reading transaction sees them. */
export class Snapshot implements Base {
  constructor(private readonly statements: Statements) {}

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.statements.get(table, key) as Tables[T] | undefined
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.statements.scan(index, group, after, limit)
  }

  isDue(index: IndexName, group: string, until: number): boolean {
    return this.statements.first(index, group) <= until
  }
}

export function readHead(statements: Statements): Head {
  const head = statements.sql(`SELECT ${HEAD.join(', ')} FROM head`).get() as Head | undefined
  if (!head) throw new Refusal('damaged', 'The store has lost its head row')
  return { ...head }
}
