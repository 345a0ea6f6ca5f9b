import { type AnyRow, SCHEMA, type TableName, TABLES } from '../../core/schema/schema.ts'
import type { Ready, Task } from '../../core/schema/task.ts'
import { readyKey } from '../../core/rows.ts'
import { sha256 } from '../../machine/digest.ts'
import { MemoryTables } from '../memory.ts'
import { outgrown } from '../successor.ts'
import type { State } from './document.ts'

/** Raised when a program that knows only the old layout would misread or spoil the new one. */
const FORMAT = 1

/** The bytes of a state are not what was published. */
export class FileDamage extends Error {}

/** Rows and events are never changed in place, so most of the next document is written already. */
const written = new WeakMap<object, string>()

function textOf(row: object): string {
  let text = written.get(row)
  if (text === undefined) written.set(row, (text = JSON.stringify(row)))
  return text
}

/** One row per line, so that people and line tools can read it too. */
function listOf(rows: Iterable<object>): string {
  const lines = Array.from(rows, textOf)
  return lines.length === 0 ? '[]' : `[\n${lines.join(',\n')}\n]`
}

const OPENING = '{"sha256":"'
const MIDDLE = '","state":'
const CLOSING = '}\n'
const STATE_AT = OPENING.length + 64 + MIDDLE.length

/** The document as it is published: fixed bytes around the state, which any language can check. */
export function render(state: State): Buffer {
  const { number, id, lineage, head, checkpoint, events, tables } = state
  const start = JSON.stringify({ format: FORMAT, number, id, lineage, head, checkpoint })
  const lists = TABLES.map((table) => `"${table}":${listOf(tables.rows[table].values())}`)
  const text = `${start.slice(0, -1)},"events":${listOf(events)},"tables":{${lists.join(',')}}}`
  const bytes = Buffer.from(text)
  const around = `${OPENING}${sha256(bytes)}${MIDDLE}`
  return Buffer.concat([Buffer.from(around), bytes, Buffer.from(CLOSING)])
}

/** Reads a document back. Throws `Damage`, or refuses one that a newer program wrote. */
export function parse(bytes: Buffer): State {
  const around = bytes.toString('latin1', 0, STATE_AT)
  const whole = around.startsWith(OPENING) && around.endsWith(MIDDLE)
  const end = bytes.length - CLOSING.length
  if (!whole || end < STATE_AT || bytes.toString('latin1', end) !== CLOSING) {
    throw new FileDamage('it is cut off, or not a state at all')
  }
  const text = bytes.subarray(STATE_AT, end)
  if (sha256(text) !== around.slice(OPENING.length, OPENING.length + 64)) {
    throw new FileDamage('its content does not match its sha256')
  }
  return shaped(readJson(text))
}

function readJson(text: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(text.toString('utf8')) as Record<string, unknown>
  } catch {
    throw new FileDamage('it is not JSON')
  }
}

function shaped(found: Record<string, unknown>): State {
  const { format, tables, ...rest } = found as unknown as State & { format: number }
  const rows = tables as unknown as Record<string, AnyRow[]> | undefined
  for (const name of GONE) delete rows?.[name]
  const unknown = Object.keys(rows ?? {}).find((name) => !TABLES.includes(name as TableName))
  if (unknown !== undefined) throw outgrown('The state', `table ${unknown}`)
  if (format > FORMAT) throw outgrown('The state', `format ${format}`)
  const lists = [rest.events, rest.lineage, ...Object.values(rows ?? {})]
  if (format !== FORMAT || !rows || !rest.head || !rest.checkpoint || !lists.every(Array.isArray)) {
    throw new FileDamage('it lacks parts that every state has')
  }
  const ready = (rows['ready'] as Ready[] | undefined)?.map(rekeyed) ?? []
  const task = (rows['task'] as Task[] | undefined)?.map(wholeTask) ?? []
  return { ...rest, tables: new MemoryTables({ ...rows, ready, task }) }
}

/** Tables that 0.1.0 had, always empty in a file. */
const GONE = ['memory_usage', 'memory_settings', 'background_job']

/** What tasks of an older program do not have; nor have they what may be null. */
const COLUMNS = Object.entries(SCHEMA.task.columns)
const NULLABLE = COLUMNS.filter(([, { flags }]) => flags.isNullable).map(([name]) => [name, null])
const BEFORE: Partial<Task> = { ...Object.fromEntries(NULLABLE), body_apart: 0, touches: [] }
const wholeTask = (row: Task): Task =>
  Object.keys(row).length < COLUMNS.length ? { ...BEFORE, ...row } : row

/** Before there was a queue, keys of ready rows did not tell their rank. */
function rekeyed(row: Ready): Ready {
  const key = readyKey(row)
  return row.key === key ? row : { ...row, key }
}
