import { attempt } from '../core/attempt.ts'
import { Refusal } from '../core/refusal.ts'

/** As much of an operation's fields as is needed to tell what they take. */
interface Field {
  schema(): { safeParse(value: unknown): { error?: { issues: readonly { code: string }[] } } }
}

type Fields = Record<string, Field>

export type Arguments = Record<string, unknown>

/** Names that agents already know, and the field each stands for where an operation has that. */
const KNOWN: Record<string, readonly string[]> = {
  agent_id: ['agent'],
  task_id: ['id'],
  timeout: ['ttl_seconds'],
  ttl: ['ttl_seconds'],
  wait: ['wait_seconds'],
  name: ['title', 'names'],
  lock: ['name'],
  lock_name: ['name'],
  description: ['body'],
  prompt: ['body'],
  dependencies: ['depends_on'],
  tags: ['labels'],
  assignee: ['assigned_to'],
  to_agent: ['to'],
  path: ['paths'],
  files: ['paths'],
  globs: ['paths'],
}

/** `taskId` and `task-id` are `task_id`. */
const snake = (said: string) =>
  said
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()

function fieldFor(said: string, fields: Record<string, unknown>): string | undefined {
  if (Object.hasOwn(fields, said)) return said
  const word = snake(said)
  if (Object.hasOwn(fields, word)) return word
  const names = Object.hasOwn(KNOWN, word) ? KNOWN[word]! : []
  return names.find((name) => Object.hasOwn(fields, name))
}

/** Arguments as an agent gave them → the input of an operation, and the agent they name. */
export function readArguments(
  fields: Fields,
  given: Arguments,
): { input: Arguments; agent: unknown } {
  const { agent, ...input } = renamed({ ...fields, agent: null }, given)
  return { input, agent: agent ?? undefined }
}

/** The same values under the names of the fields that they are meant for. */
function renamed(fields: Record<string, unknown>, given: Arguments): Arguments {
  if (Object.keys(given).every((said) => Object.hasOwn(fields, said))) return given
  const input: Arguments = {}
  for (const [said, value] of Object.entries(given)) {
    const name = fieldFor(said, fields) ?? said
    if (Object.hasOwn(input, name) && !isSame(input[name], value)) throw twice(said, name)
    // Not by assignment: a field `__proto__` must stay one, to be refused.
    const own = { value, enumerable: true, writable: true, configurable: true }
    Object.defineProperty(input, name, own)
  }
  return input
}

/** `42` and `"42"` are one id. */
const isSame = (a: unknown, b: unknown) => spelled(a) === spelled(b)
const spelled = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

function twice(said: string, field: string): Refusal {
  return new Refusal('invalid', `${said} and ${field} mean the same, but their values differ`, {
    next: `Send only one of them.`,
  })
}

/**
 * The input with every value that its field does not take spelled as the field wants it, where it
 * can only mean one thing: a number as text, an id as a number, one word for a list of one. What a
 * field takes is never changed, and what makes no sense stays for the check to refuse.
 */
export function understood(fields: Fields, raw: Arguments): Arguments {
  const meant = { ...renamed(fields, raw) }
  for (const [name, value] of Object.entries(meant)) {
    if (value === undefined || !Object.hasOwn(fields, name)) continue
    const as = meaningOf(name, fields[name]!, value)
    if (as === LEFT_OUT) delete meant[name]
    else meant[name] = as
  }
  return meant
}

const LEFT_OUT = Symbol('left out')
const schemas = new WeakMap<Field, ReturnType<Field['schema']>>()

function meaningOf(name: string, field: Field, value: unknown): unknown {
  let schema = schemas.get(field)
  if (!schema) schemas.set(field, (schema = field.schema()))
  if (!schema.safeParse(value).error) return value
  // Of what is refused in any case, the reading with the right type says best what is wrong.
  let nearest = value
  for (const each of readings(name, value)) {
    if (each === undefined) continue
    const { error } = schema.safeParse(each === LEFT_OUT ? undefined : each)
    if (!error) return each
    if (nearest === value && error.issues[0]?.code !== 'invalid_type') nearest = each
  }
  return nearest
}

/** What a value may stand for, the likeliest first. */
function* readings(name: string, value: unknown): Generator {
  if (value === null) yield LEFT_OUT
  else if (Array.isArray(value)) yield value.map(idOf)
  else if (typeof value === 'number') {
    yield idOf(value)
    yield [idOf(value)]
  } else if (typeof value === 'string') yield* readingsOf(name, value.trim())
}

function* readingsOf(name: string, text: string): Generator {
  if (/^(?:|null|none|undefined)$/i.test(text)) yield LEFT_OUT
  if (name === 'status' && /^(?:all|any)$/i.test(text)) yield LEFT_OUT
  if (/^[-+]?\d+(?:\.\d+)?$/.test(text)) yield Number(text)
  if (/^(?:true|false)$/i.test(text)) yield text.toLowerCase() === 'true'
  if (name.endsWith('_seconds')) yield secondsIn(text)
  if (name === 'priority') yield PRIORITIES[text.toLowerCase()]
  if (/^[[{]/.test(text)) {
    const parsed = jsonIn(text)
    yield Array.isArray(parsed) ? parsed.map(idOf) : parsed
  } else if (text !== '') yield itemsIn(text)
}

/** A number as the id that is meant; one that nobody would write as an id stays a number. */
function idOf(value: unknown): unknown {
  return typeof value === 'number' && /^\d+(?:\.\d+)?$/.test(String(value)) ? String(value) : value
}

const UNITS: Record<string, number> = {
  ms: 0.001,
  s: 1,
  sec: 1,
  m: 60,
  min: 60,
  h: 3600,
  d: 86_400,
}

function secondsIn(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h|d)$/i.exec(text) ?? []
  return unit === undefined ? undefined : Number(number) * UNITS[unit.toLowerCase()]!
}

const PRIORITIES: Record<string, number> = {
  low: 2,
  normal: 5,
  medium: 5,
  high: 8,
  urgent: 9,
  critical: 9,
}

const jsonIn = (text: string): unknown => attempt(() => JSON.parse(text), undefined)

/** One item, or several between commas and line breaks; a comma within braces is a glob's own. */
function itemsIn(text: string): string[] {
  const items = text.split(/[,\n](?![^{]*\})/).map((each) => each.trim())
  return items.filter((each) => each !== '')
}
