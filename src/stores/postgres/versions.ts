import type { TableName } from '../../core/rows.ts'

/**
 * Tables of rows that are written again and again. Each version of such a row has an entry of its
 * own in the primary key: the row's key, and the number of the commit that wrote it (`written`).
 * Were it the key alone, every look and every write would pass all versions that are dead but not
 * yet cleared, and while somebody keeps a transaction open none is. The newest version is looked
 * for first: as long as the row is there, that is the one.
 */
export const VERSIONED: readonly TableName[] = [
  'lease',
  'share',
  'lane',
  'parking',
  'limit',
  'queue',
  'stat',
]

export const isVersioned = (table: TableName) => VERSIONED.includes(table)
