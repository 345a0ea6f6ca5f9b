import type { CallToolResult } from '@modelcontextprotocol/server'
import { quoted, word } from '../../core/quote.ts'
import type { QueueStatus } from '../../core/queue/status.ts'
import { byName, inWordsOf, type Say } from '../../core/next.ts'
import { Refusal } from '../../core/refusal.ts'
import { asCommand } from '../../operations/command.ts'
import { type ByAnswer, operationNamed, type RegisteredName } from '../../operations/registry.ts'
import type { ShownClaim } from '../../operations/tasks.ts'
import { broken } from '../broken.ts'
import { readingOf } from '../reads/all.ts'
import type { Pen } from '../reads/pen.ts'
import { unseenIn } from '../unseen.ts'
import { MEMORY_SHORT } from './memory_answers.ts'
import { spelled } from './tools.ts'
import { TRUST, untrusted } from './untrusted.ts'

type Shape = Record<string, unknown>

/** A result for a model: a few lines to read, and the same as data without what says nothing. */
export function answerOf(operation: string, answer: object): CallToolResult {
  const structuredContent = {
    ...TRUST,
    ...shortened(operation, inWordsOf(answer, byTool) as Shape),
  }
  const text = wordsOf(operation, answer) ?? JSON.stringify(structuredContent)
  return { content: [{ type: 'text', text }], structuredContent }
}

/** What a model reads of an answer; undefined where it reads the data. */
export const wordsOf = (operation: string, answer: object): string | undefined =>
  readingOf(operation, guarded(inWordsOf(answer, byTool)), PEN)

/** What happened, why, what to do next: as text and as data. Our own bugs are not described. */
export function refusalAnswer(error: unknown): CallToolResult {
  const refusal = error instanceof Refusal ? error : broken(error)
  const { code, message, next, details } = refusal.inWords(byTool).error
  const structuredContent = { ...TRUST, error: { code, message, next, details } }
  const text = `Refused (${code}): ${message}${next && `\nNext: ${next}`}`
  return { isError: true, content: [{ type: 'text', text }], structuredContent }
}

/** What no tool does is a command for a person. */
const byTool: Say = (call) => {
  const operation = operationNamed.get(call.operation)
  if (operation?.tool === undefined) return asCommand(call)
  const given = Object.entries(call.input).map(([name, each]) => [spelled(name, operation), each])
  return byName({ operation: operation.tool, input: Object.fromEntries(given) })
}

/** Sentences of ours: what they say of others is in quotes already. */
const OURS = new Set(['sentence', 'next', 'what', 'why', 'note', 'warnings', 'message'])
/** Texts that a pen puts between marks, or in quotes, as a whole. */
const THEIRS = new Set(['body', 'content', 'excerpt', 'draft'])

/**
 * Every other text of an answer as a model may read it between words of ours: bare where it cannot
 * be taken for a sentence, else in quotes and on one line.
 */
function guarded(value: unknown, name = ''): unknown {
  if (OURS.has(name) || THEIRS.has(name)) return value
  if (typeof value === 'string') return word(value)
  if (Array.isArray(value)) return value.map((each) => guarded(each))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [word(key), guarded(each, key)]),
  )
}

const plain = (text: string | number) => String(text)
const begun = (verb: string) => verb[0]!.toUpperCase() + verb.slice(1)

/** Brief and plain: every character is paid for by the conversation. */
const PEN: Pen = {
  did: begun,
  undid: begun,
  good: plain,
  warn: plain,
  bad: plain,
  strong: plain,
  dim: plain,
  time: (at) => at ?? '',
  sentence: plain,
  said: quoted,
  body: (what, text) => {
    const unseen = unseenIn(text)
    const warning = unseen ? `(contains invisible characters: ${unseen})\n` : ''
    return warning + untrusted(what, [text])
  },
  call: byTool,
  facts: (facts) => {
    const told = facts.filter(([, value]) => value !== null && value !== '')
    return [told.map(([name, value]) => `${name} ${value}`).join(', ')]
  },
  table: (head, rows) =>
    [head, ...rows].map((row) => row.map((cell) => cell || '-').join(' ')).join('\n'),
  more: (next) => `more: after=${next}`,
  isTool: true,
}

const TASK_ITEM = ['id', 'title', 'status', 'priority', 'project', 'assignee'] as const
const TASK_BRIEF = ['id', 'title', 'status', 'version', 'priority'] as const
const LEASE_ITEM = ['name', 'holder', 'fence', 'expires_in_seconds'] as const
const RUN_BRIEF = ['id', 'status'] as const

/** What a tool shows of each answer; the rest is shown when that one thing is asked for. */
const SHORT: ByAnswer<Shape> = {
  ...MEMORY_SHORT,
  'task.list': (list) => brief(list, { items: TASK_ITEM }),
  'lock.list': (list) => brief(list, { items: LEASE_ITEM }),
  'agent.heartbeat': (list) => brief(list, { items: LEASE_ITEM }),
  'task.claim': ({ claims, ...one }) => ({
    ...claimBrief(one),
    ...(claims && { claims: claims.map(claimBrief) }),
  }),
  'task.status': (claim) => brief(claim, { task: TASK_BRIEF, run: RUN_BRIEF }),
  'queue.add': (added) => brief(added, { task: ['id', 'status'] }),
  'reserve.add': (list) => brief(list, { items: ['path', 'fence', 'expires_at', 'shared'] }),
  'reserve.release': (list) => brief(list, { items: ['path', 'fence', 'released'] }),
  'land.add': (landing) => only(['id', 'target', 'branch', 'status', 'position'], landing),
  'task.create': (task) => only(TASK_BRIEF, task),
  'task.update': (task) => only(TASK_BRIEF, task),
  'queue.cancel': (task) => only(TASK_BRIEF, task),
  'task.get': withoutEmpty,
  'task.explain': ({ actions: _, chain: _chain, ...said }) => said,
  'lock.explain': ({ actions: _, chain: _chain, ...said }) => said,
  'queue.status': queueBrief,
  'stuck.get': (stuck) =>
    brief(stuck, { items: ['kind', 'severity', 'what', 'tasks', 'agents', 'about'] }),
}

const claimBrief = (claim: ShownClaim) => brief(claim, { run: RUN_BRIEF })

function shortened(operation: string, result: Shape): Shape {
  const short: ((result: never) => Shape) | undefined = SHORT[operation as RegisteredName]
  return short ? short(result as never) : brief(result)
}

/** Names of fields that a part of an answer has, or each item of a part that is a list. */
type FieldsIn<Part> = readonly (keyof NonNullable<Part extends readonly (infer I)[] ? I : Part>)[]

/** An answer with these fields only of its parts; of the other parts, all that is not empty. */
function brief<A extends object>(
  answer: A,
  parts: { [P in keyof A]?: FieldsIn<A[P]> } = {},
): Shape {
  const told = parts as Record<string, readonly string[] | undefined>
  const shown = Object.entries(answer).map(([name, part]) => [name, partOf(part, told[name])])
  return Object.fromEntries(shown) as Shape
}

function partOf(value: unknown, fields: readonly string[] | undefined): unknown {
  if (Array.isArray(value)) return fields ? value.map((item) => partOf(item, fields)) : value
  if (typeof value !== 'object' || value === null) return value
  return withoutEmpty(fields ? only(fields, value as Shape) : value)
}

function only<Item extends object>(fields: readonly (keyof Item & string)[], item: Item): Shape {
  return Object.fromEntries(fields.map((name) => [name, item[name]]))
}

/** Fields inside that are null or empty say nothing, and a model would read them all. */
function withoutEmpty(value: object): Shape {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => !isEmpty(each)))
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === undefined
  return value === null || Object.keys(value).length === 0
}

/** How many users are named; the rest is in the totals. */
const USERS_SHOWN = 10

const few = (by: Record<string, number>) =>
  Object.fromEntries(Object.entries(by).slice(0, USERS_SHOWN))

/** How full the queue is and who is busy; which dispatcher does what is for people. */
function queueBrief({ paused, pending, active, user_locks }: QueueStatus): Shape {
  const details = user_locks.details.slice(0, USERS_SHOWN)
  return {
    ...(paused && { paused }),
    pending: withoutEmpty({ ...pending, by_user: few(pending.by_user) }),
    active: withoutEmpty({ ...active, by_user: few(active.by_user) }),
    user_locks: {
      active: user_locks.active,
      details: details.map(({ user, task_id }) => ({ user, task_id })),
    },
  }
}
