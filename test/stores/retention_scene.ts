import type { TableName } from '../../src/core/schema/schema.ts'
import { RETENTION, type Retention } from '../../src/core/retention.ts'
import { openStore, type Place } from '../../src/stores/open.ts'
import { forgetOld } from '../../src/stores/writer/prune.ts'
import type { Store } from '../../src/stores/writer/store.ts'

/** Nothing ever leaves. */
export const KEEP_ALL = Object.fromEntries(
  Object.keys(RETENTION).map((kind) => [kind, { days: null, max: null }]),
) as Retention

/** Which of the keys have a row. */
export const heldRows = (store: Store, table: TableName, keys: string[]): Promise<boolean[]> =>
  store.read((view) => keys.map((key) => view.get(table, key) !== undefined))

/** As `db prune --keep` does. */
export async function pruneEvents(place: Place, max: number): Promise<void> {
  const store = openStore(place)
  await forgetOld(store, { retention: { ...KEEP_ALL, events: { days: null, max } } })
  await store.close()
}
