import { FOLLOWED, type Likely, nameFrom } from '../../core/ahead.ts'
import type { TableName } from '../../core/rows.ts'
import { INDEXES, type IndexName } from '../../core/view.ts'
import type { AnyRow } from '../port.ts'
import { quoted } from './codec.ts'
import type { Value } from './driver.ts'
import { fromPlaces, placesIn, placeValues } from './places.ts'
import { byKey, scanText } from './scans.ts'
import { mostOf, type Wanted } from './wanted.ts'

/** Of each group: as many rows as a rule looks at before it asks for more. */
const EACH = 4

interface AheadBranch {
  table: TableName
  /** Where its rows come from; `t` are its columns. */
  from: string
  next: readonly Likely[]
}

/** Rows by key, or groups of an index, and the statements that find their names. */
interface Target {
  likely: Likely
  names: string[]
}
type Targets = Map<TableName | IndexName, Target>

/**
 * Loads the wanted groups of the indexes that have something behind them, and what is behind them,
 * found by the server from one row to the next. A rule asks for one after the other; without this,
 * each would be a round trip. Undefined where no such group is wanted.
 */
export function aheadParts(schema: string, { groups }: Wanted) {
  const withs: string[] = []
  const branches: AheadBranch[] = []
  const values: Value[] = []
  const found = (table: TableName, text: string, next: readonly Likely[]) => {
    const name = `ahead_${withs.length}`
    withs.push(`${name} AS MATERIALIZED (${text})`)
    branches.push({ table, from: `${name} AS t`, next })
    return { name, next }
  }
  let sources: { name: string; next: readonly Likely[] }[] = []
  for (const { index, next } of FOLLOWED) {
    const wanted = groups.get(index)
    if (!wanted) continue
    const text = `SELECT t.* FROM ${fromPlaces(index, schema, values.length + 1)}`
    values.push(...placeValues(index, placesIn(wanted), mostOf(wanted)))
    sources.push(found(INDEXES[index].table, text, next))
  }
  if (sources.length === 0) return undefined
  const last: Targets = new Map()
  while (sources.length > 0) {
    // What is followed by the same is found together, whichever way leads to it.
    const onward = new Map<readonly Likely[], Targets>()
    for (const { name, next } of sources) {
      for (const likely of next) {
        const targets = likely.next ? (onward.get(likely.next) ?? new Map()) : last
        if (likely.next) onward.set(likely.next, targets)
        addName(targets, likely, `SELECT ${nameText(likely)} AS g FROM ${name}`)
      }
    }
    sources = [...onward].map(([next, targets]) => {
      const all = [...targets.values()]
      const text = all.map((target) => `SELECT t.* FROM ${fromText(schema, target)}`)
      return found(tableOf(all[0]!.likely), text.join('\nUNION '), next)
    })
  }
  for (const target of last.values()) {
    branches.push({ table: tableOf(target.likely), from: fromText(schema, target), next: [] })
  }
  return { withs, branches, values }
}

const tableOf = (likely: Likely) => ('table' in likely ? likely.table : INDEXES[likely.index].table)

function addName(targets: Targets, likely: Likely, name: string): void {
  const to = 'table' in likely ? likely.table : likely.index
  const target = targets.get(to)
  if (target) target.names.push(name)
  else targets.set(to, { likely, names: [name] })
}

/** What `nameFrom` says, by the server: null where a field is. */
function nameText({ prefix, fields }: Likely): string {
  const parts = fields.map(quoted).join(' || chr(10) || ')
  return prefix === undefined ? parts : `'${prefix}' || ${parts}`
}

function fromText(schema: string, { likely, names }: Target): string {
  const all = names.join(' UNION ')
  if ('index' in likely) {
    const scan = scanText(likely.index, schema, '', `${EACH}`)
    return `(${all}) AS g0 CROSS JOIN LATERAL (${scan}) AS t`
  }
  return byKey(schema, likely.table, `(${all})`)
}

/** What `aheadParts` has asked for, said by the rows it found: so what is not there is missing. */
export function foundAhead(branches: AheadBranch[], rowsOf: (branch: number) => AnyRow[]): Wanted {
  const keys = new Map<TableName, Set<string>>()
  const groups: Wanted['groups'] = new Map()
  for (const [i, { next }] of branches.entries()) {
    for (const row of next.length > 0 ? rowsOf(i) : []) {
      for (const likely of next) {
        const name = nameFrom(row, likely)
        if (name === undefined) continue
        if ('table' in likely) {
          keys.set(likely.table, (keys.get(likely.table) ?? new Set()).add(name))
        } else {
          const each = { limit: EACH, after: undefined }
          groups.set(likely.index, (groups.get(likely.index) ?? new Map()).set(name, each))
        }
      }
    }
  }
  return { keys, groups, pages: new Map() }
}
