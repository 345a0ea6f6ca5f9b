import * as z from 'zod/mini'
import type { Caller, Spending } from '../core/caller.ts'
import type { Waiting } from '../core/locks/lock.ts'
import { Refusal, type RefusalCode } from '../core/refusal.ts'
import { textFault } from '../core/text.ts'
import type { Touches } from '../core/touched.ts'
import type { Need, View } from '../core/view.ts'
import type { Store } from '../stores/writer/store.ts'
import { flag as yes, someName } from './schemas.ts'
import { understood } from './spelling.ts'

export type TokenRole = 'viewer' | 'agent' | 'admin'

/** One field of an operation's input: its schema and what it means. */
export interface Field<S extends z.ZodMiniType = z.ZodMiniType> {
  schema: () => S
  doc: string
  /** How the CLI spells it, where that is not what `flagOf` makes of its name; null: not at all. */
  flag?: string | null
}

/** What the help of the CLI calls values, where it is not the last word of their field's name. */
const CALLED = {
  agent: 'assigned_to author',
  branch: 'onto',
  json: 'metadata',
  n:
    'based_on below_confidence bytes confidence fence limit max min_confidence priority ra_score ' +
    'retries version weight',
  name: 'agent_command group lock project user',
  next: 'after',
  place: 'checkout',
  sha: 'commit',
  side: 'choose',
  text: 'body content prompt reason title',
  time: 'from to',
}
const CALLED_BY_NAME = new Map(
  Object.entries(CALLED).flatMap(([what, names]) => names.split(' ').map((name) => [name, what])),
)

/** `--ttl <duration>` of `ttl_seconds`, `--takeover`; undefined for what the CLI has no flag for. */
export function flagOf(name: string, { flag, schema }: Field): string | undefined {
  if (flag !== undefined) return flag ?? undefined
  const words = `--${name.replace(/_seconds$/, '').replaceAll('_', '-')}`
  if (schema === yes) return words
  const last = name.endsWith('_seconds') ? 'duration' : name.split('_').at(-1)!
  return `${words} <${CALLED_BY_NAME.get(name) ?? last}>`
}

export type Fields = Record<string, Field>
export type Input<F extends Fields> = { [K in keyof F]: z.output<ReturnType<F[K]['schema']>> }

export type OperationName = `${string}.${string}`

/** An input as a caller may write it: what has a default may be left out. */
export type RawInput<F extends Fields> = z.input<
  z.ZodMiniObject<{ [K in keyof F]: ReturnType<F[K]['schema']> }>
>

/** What an operation does and who may ask for it. */
interface Access<F extends Fields> {
  effect: 'read' | 'write'
  role: TokenRole
  /** What it touches: held to the scope of the caller's token in `call.ts`. */
  touches: Touches<Input<F>>
  /** Which refusals it has of its own; those of any call are not named. */
  refuses: readonly RefusalCode[]
  /** A file store has no queue and no memory: it asks for a database. */
  needs?: 'database'
}

/** `decide` gets a checked input and holds no rules: it calls core and shapes the answer. */
interface Declared<F extends Fields, Reply, Name extends OperationName, Found, Said> {
  name: Name
  doc: string
  input: F
  /** What an answer looks like, every field of it; built when it is first wanted. */
  output: () => z.ZodMiniType<Reply>
  /** How the CLI reaches it: its words, then positional fields (`names…` takes all the rest). */
  command?: string
  /** What `wait_seconds` waits for: a place in a lock's line (the default), or a ready task. */
  waits?: 'line' | 'task'
  /** Its answer shows leases that the caller has now; see `grants.ts`. */
  grants?: true
  /** It may name locks of our own programs, `leasehold:…`. */
  names_ours?: true
  /**
   * What it may add to what a token keeps; looked at before it is decided, see `budget.ts`. With
   * the reply: what it did add.
   */
  spends?(input: Input<F>, reply?: Reply): Spending
  /** Rows that `decide` will look at, to be loaded together with those of other asks. */
  reads?(input: Input<F>, caller: Caller): Need[]
  /**
   * What rows by key and by index cannot tell: found before a read is decided, and a moment old
   * then. `decide` looks at the rows themselves again.
   */
  lookup?(store: Store, input: Input<F>, caller: Caller): Promise<Found>
  /**
   * Answers what `output` says, every field of it. `ticket_id` is given when the caller would wait
   * in line rather than be refused, `found` is what `lookup` found.
   */
  decide(
    view: View,
    input: Input<F>,
    caller: Caller,
    ticket_id?: string,
    found?: NoInfer<Found>,
  ): Said
  /** Only our own programs ask it: pages do not describe it, and it may change at any time. */
  internal?: true
  /** The tool's name for agents that come by MCP; without one it is no tool. */
  tool?: string
  /** The part of a reply that `replay` needs; undefined when there was no effect to remember. */
  keeps?(reply: Reply): Reply | undefined
  /** Answers a request id that was seen before; without it the first reply is given again. */
  replay?(view: View, reply: Reply, input: Input<F>, caller: Caller): Reply
}

/** One thing that can be asked, declared once: every door is made from this record. */
export type Operation<
  F extends Fields = Fields,
  O = unknown,
  N extends OperationName = OperationName,
  L = unknown,
  Said extends O | Waiting = O | Waiting,
> = Declared<F, O, N, L, Said> & Access<F>

/** Refusals of what is done under a lease that is not the caller's, or not any more. */
export const LEASE_REFUSALS = ['held', 'fence_stale', 'lease_expired'] as const

/** Makes operations that are alike in `access` and have the fields `more`; a record may differ. */
function declaring<A extends Partial<Access<Fields>>, More extends Fields>(access: A, more: More) {
  type Rest<F extends Fields> = Omit<Access<F>, keyof A> & Partial<Access<F>>
  return <
    const N extends OperationName,
    F extends Fields,
    S extends z.ZodMiniType,
    Said extends z.output<S> | Waiting,
    L = unknown,
  >(
    record: Declared<F, z.output<S>, N, L, Said> & { output: () => S } & Rest<F>,
  ) => {
    const operation = { refuses: [], ...access, ...record, input: { ...record.input, ...more } }
    return operation as unknown as Operation<F & More, z.output<S>, N, L, Said>
  }
}

const READ = { effect: 'read', role: 'viewer', touches: 'rows', refuses: [] } as const
const WRITE = { effect: 'write', role: 'agent', refuses: [] } as const
const ADMIN = { effect: 'write', role: 'admin', touches: 'whole', refuses: [] } as const
const ON_DATABASE = { needs: 'database' } as const

/** What every write may have, and no `decide` sees: see `request.ts`. */
const repeated = {
  request_id: field(
    someName,
    'Repeating a request with the same id, within 24 hours, has one effect and one answer.',
  ),
}

/** Anybody with a token may ask; rows outside the token's scope are not seen. */
export const readOperation = declaring(READ, {})
export const writeOperation = declaring(WRITE, repeated)
/** It concerns the whole store: a token with a scope does not reach it. */
export const adminOperation = declaring(ADMIN, repeated)

/** The same, of what a file store does not have. */
export const onDatabase = {
  read: declaring({ ...READ, ...ON_DATABASE }, {}),
  write: declaring({ ...WRITE, ...ON_DATABASE }, repeated),
  admin: declaring({ ...ADMIN, ...ON_DATABASE }, repeated),
}

/** Durations are seconds on the wire, and milliseconds in rules. */
export const toMs = (seconds: number | undefined) =>
  seconds === undefined ? undefined : seconds * 1000

export function field<S extends z.ZodMiniType>(
  schema: () => S,
  doc: string,
  flag?: string | null,
): Field<S> {
  return flag === undefined ? { schema, doc } : { schema, doc, flag }
}

const parsers = new WeakMap<Fields, z.ZodMiniType>()

/**
 * Checks an input against its fields: wrong, missing and unknown ones are refused as `invalid`, and
 * so is text that not every store could keep. What is spelled another way is understood, see
 * `spelling.ts`.
 */
export function parseInput<F extends Fields>(fields: F, raw: unknown): Input<F> {
  refuseMany(fields, raw)
  refuseUnkept(raw)
  let parser = parsers.get(fields)
  if (!parser) {
    const shape = Object.fromEntries(Object.entries(fields).map(([k, f]) => [k, f.schema()]))
    parsers.set(fields, (parser = z.strictObject(shape)))
  }
  const result = parser.safeParse(raw)
  if (result.success) return result.data as Input<F>
  const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw)
  const meant = isObject ? understood(fields, raw as Record<string, unknown>) : raw
  const again = parser.safeParse(meant)
  if (again.success) return again.data as Input<F>
  throw refusalOf(again.error.issues, Object.keys(fields), meant)
}

/** So many fields or entries no operation takes: a schema would look at each of them. */
const MANY = 1_000

/** `invalid`, `too_large`: what is far too much is not looked at one by one. */
function refuseMany(fields: Fields, raw: unknown): void {
  if (typeof raw !== 'object' || raw === null) return
  const names = Object.keys(raw)
  if (names.length > MANY) {
    throw new Refusal('invalid', `The input has ${names.length} fields`, {
      next: `Known fields: ${Object.keys(fields).join(', ')}.`,
    })
  }
  for (const name of names) {
    const value = (raw as Record<string, unknown>)[name]
    if (!Array.isArray(value) || value.length <= MANY) continue
    throw new Refusal('too_large', `${shown(name)} may have at most ${MANY} entries`, {
      next: 'Send fewer at once.',
    })
  }
}

const NAME_SHOWN = 100
const shown = (name: string) => (name.length > NAME_SHOWN ? `${name.slice(0, NAME_SHOWN)}…` : name)

/** `invalid`: such text would come back as another one, or not at all. */
function refuseUnkept(raw: unknown): void {
  const fault = textFault(raw)
  if (!fault) return
  const { path, message } = fault
  throw new Refusal('invalid', `${path || 'The input'} ${message}`, {
    next: 'Send text as well-formed Unicode, without NUL; encode bytes, for example with base64.',
    details: { issues: [{ path, message }] },
  })
}

/** More are not told: who has corrected these is told of the rest. */
const ISSUES_TOLD = 20

function refusalOf(all: readonly z.core.$ZodIssue[], known: string[], raw: unknown): Refusal {
  const issues = all.slice(0, ISSUES_TOLD)
  const sentences = issues.map((issue) => sentenceOf(issue, raw))
  const tooLarge = issues.some((issue) => issue.message.startsWith('may have at most'))
  const short = issues.every((issue) => String(issue.path[0] ?? '').match(/name|id|agent/))
  return new Refusal(tooLarge && !short ? 'too_large' : 'invalid', sentences.join('; '), {
    next: issues.some((issue) => issue.code === 'unrecognized_keys')
      ? `Known fields: ${known.join(', ')}.`
      : 'Correct the input and ask again.',
    details: {
      issues: issues.map((issue) => ({ path: issue.path.join('.'), message: messageOf(issue) })),
    },
  })
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'unrecognized_keys') return issue.message
  const more = issue.keys.length - ISSUES_TOLD
  const named = issue.keys.slice(0, ISSUES_TOLD).map(shown).join(', ')
  return `${named}${more > 0 ? ` and ${more} more` : ''}: no such field`
}

function sentenceOf(issue: z.core.$ZodIssue, raw: unknown): string {
  const where = issue.path.join('.') || 'The input'
  if (issue.code === 'unrecognized_keys') return messageOf(issue)
  if (issue.code === 'invalid_type' && valueAt(raw, issue.path) === undefined) {
    return `${where} is missing`
  }
  return `${where} ${issue.message}`
}

/** An issue does not say what was given, only where. */
function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw
  for (const key of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[key]
  return value
}
