import type { Cursor } from '../../core/schema/indexes.ts'
import type { IndexName, TableName } from '../../core/schema/schema.ts'

export interface WantedPage {
  index: IndexName
  group: string
  after: Cursor
  limit: number
}

/** How many rows of a group, and behind which: where its start is known, that goes on. */
export interface WantedStart {
  limit: number
  after: Cursor | undefined
}

/** What to load: rows by key, starts of groups, and pages behind a cursor. */
export interface Wanted {
  keys: Map<TableName, Set<string>>
  groups: Map<IndexName, Map<string, WantedStart>>
  /** Once each, however many asks look there. */
  pages: Map<string, WantedPage>
}

export const pageKey = ({ index, group, after }: Omit<WantedPage, 'limit'>) =>
  JSON.stringify([index, group, after.order, after.key])

export const nothing = (): Wanted => ({ keys: new Map(), groups: new Map(), pages: new Map() })

/** Of groups that are loaded together, each gets as many rows as the one that wants most. */
export const mostOf = (groups: Map<string, WantedStart>) =>
  Math.max(...[...groups.values()].map(({ limit }) => limit))
