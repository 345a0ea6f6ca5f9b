import { Refusal } from '../../core/refusal.ts'
import { taskId } from '../../operations/fields.ts'
import { inputSchema, type JsonSchema } from '../../operations/json_schema.ts'
import { type Fields, type Operation, parseInput } from '../../operations/operation.ts'
import {
  type FieldName,
  operations,
  registered,
  type RegisteredField,
  type RegisteredName,
} from '../../operations/registry.ts'
import { type Arguments, readArguments, understood } from '../../operations/spelling.ts'

interface Asked {
  operation: Operation
  input: Arguments
  /** The agent that the arguments name, unchecked; undefined when they name none. */
  agent: unknown
}

/** A tool as `tools/list` shows it, and how its arguments become the input of an operation. */
export interface Tool {
  listed: {
    name: string
    description: string
    inputSchema: JsonSchema & { type: 'object' }
    annotations: Record<string, boolean>
  }
  read(given: Arguments): Asked
}

/** Tools on a task's lock: the operation of a lock, with the name filled in from the task's id. */
const TASK_LOCKS = [
  {
    tool: 'acquire_task_lock',
    of: 'lock.acquire',
    doc: "Take a task's lock without touching its status.",
  },
  { tool: 'release_task_lock', of: 'lock.release', doc: "Give a task's lock back." },
  {
    tool: 'get_task_lock_status',
    of: 'lock.status',
    doc: "Who holds a task's lock, until when, and who waits.",
  },
] as const satisfies { tool: string; of: RegisteredName; doc: string }[]

const EXPLAIN: RegisteredName = 'task.explain'

const CORE: ReadonlySet<string> = new Set<RegisteredName>([
  'task.claim',
  'task.status',
  'task.create',
  'lock.acquire',
  'lock.release',
  'reserve.add',
  EXPLAIN,
])

/** Accepted, but not shown: every line of a schema is paid for by every conversation. */
const HIDDEN: ReadonlySet<string> = new Set<FieldName | RegisteredField>([
  'ra_mode',
  'ra_score',
  'process',
  'request_id',
  'takeover',
  'lock.acquire.priority',
  'lock.release.names',
  ...(['acquire', 'renew', 'release', 'hand_off'] as const).map(
    (verb) => `lock.${verb}.task_id` as const,
  ),
  'task.status.ttl_seconds',
  'queue.add.id',
  'queue.add.title',
  'queue.add.group',
  'queue.add.labels',
  'queue.add.metadata',
  'queue.add.touches',
  'queue.add.agent_command',
  'queue.add.time_limit_seconds',
  'queue.add.retries',
  'repository',
  'nested',
  'reserve.add.project',
  'reserve.add.checkout',
  'reserve.release.project',
  'reserve.release.checkout',
  'reserve.release.fence',
  'reserve.ask.project',
  'reserve.ask.checkout',
  'conflict.list.status',
  'conflict.list.scope',
  'memory.search.author',
  'memory.search.min_confidence',
  'memory.search.mode',
  'memory.context.scope',
  'duplicate.list.status',
  'duplicate.list.scope',
  'task.create.user',
  'task.create.group',
  'task.create.metadata',
  'task.create.touches',
  'task.update.user',
  'task.update.group',
  'task.update.metadata',
  'task.update.touches',
])

/** Where the doc of a field speaks of the command line, or says what its name says already. */
const SHORT: { [F in FieldName | RegisteredField]?: string } = {
  id: '',
  'task.create.id': 'An id of your own (default: the next number).',
  title: '',
  project: '',
  label: '',
  labels: '',
  limit: '',
  body: 'Everything the agent must know.',
  depends_on: 'Ids of tasks that must be done first.',
  fence: 'The fence you were given.',
  ttl_seconds: 'Lease length (default 300).',
  'lock.renew.ttl_seconds': 'A new length (default: as it is).',
  'lock.hand_off.ttl_seconds': '',
  wait_seconds: 'Wait in line this long if held.',
  after: '`next` of the last page.',
  queued: 'Also take enqueued tasks.',
  'reserve.add.paths': 'Globs: src/**, docs/*.md.',
  'reserve.add.shared': 'Others may share them.',
  'reserve.add.ttl_seconds': 'Default 900.',
  'reserve.add.reason': '',
  'reserve.release.paths': 'Default: all of yours.',
  'reserve.ask.paths': '',
  'reserve.ask.reason': 'Why; they read it once.',
  'queue.add.prompt': 'Everything the agent must know.',
  'queue.add.user': 'The person it is for.',
  scope: 'global (default), project:NAME, user:NAME, task:ID.',
  key: '',
  tags: '',
  'memory.put.content': '',
  'memory.put.ttl_seconds': 'Forget it after this long.',
  'memory.put.task_id': 'Written under your claim of this task.',
  'conflict.list.id': 'This one, with both contents and a draft.',
  query: '',
  'memory.search.scope': 'Only this scope.',
  'memory.search.newer_than_seconds': '',
  token_budget: '',
  'memory.context.task_id': 'The task they are for; or give a query.',
  'duplicate.resolve.content': 'For merge.',
  choose: 'ours (was there), theirs (came later), or a version.',
}

const WHO = 'Who you are, if you are a subagent: YOU/NAME.'

/** What a repeated call with the same arguments does not change any further. */
const IDEMPOTENT: ReadonlySet<string> = new Set<RegisteredName>([
  'lock.renew',
  'lock.release',
  'reserve.add',
  'agent.heartbeat',
  'queue.cancel',
])
const DESTRUCTIVE: ReadonlySet<string> = new Set<RegisteredName>(['task.update', 'queue.cancel'])

const byName = new Map<string, Tool>()

/** All tools by name, made once from the registry: one for each operation that names one. */
function toolsByName(): Map<string, Tool> {
  if (byName.size > 0) return byName
  for (const operation of operations) {
    const { tool } = operation
    const make = operation.name === EXPLAIN ? explainTool : plainTool
    if (tool) byName.set(tool, make(tool, operation))
    for (const alias of TASK_LOCKS) {
      if (alias.of === operation.name) byName.set(alias.tool, taskLockTool(alias, operation))
    }
  }
  return byName
}

export function toolsIn(choice: 'core' | 'all'): Tool[] {
  const tools = toolsByName()
  if (choice === 'all') return [...tools.values()]
  return operations.filter(({ name }) => CORE.has(name)).map(({ tool }) => tools.get(tool!)!)
}

function plainTool(name: string, operation: Operation): Tool {
  return {
    listed: listed(name, operation.doc, operation, operation.input),
    read: (given) => ({ operation, ...argumentsFor(operation.input, given) }),
  }
}

function taskLockTool(alias: (typeof TASK_LOCKS)[number], operation: Operation): Tool {
  const { name: _, names: _all, task_id: _id, ...rest } = operation.input
  const fields = { id: taskId, ...rest }
  return {
    listed: listed(alias.tool, alias.doc, operation, fields),
    read: (given) => {
      const { input, agent } = argumentsFor(fields, given)
      const { id, ...others } = input
      const unknown = ['name', 'names'].find((name) => name in others)
      if (unknown !== undefined) throw unknownField(unknown, fields)
      const { task_id } = parseInput({ task_id: taskId }, { task_id: id })
      return { operation, input: { ...others, task_id }, agent }
    },
  }
}

/** Understood before the call: who remembers fences for the model looks for the lock's name. */
function argumentsFor(fields: Fields, given: Arguments): { input: Arguments; agent: unknown } {
  const { input, agent } = readArguments(fields, given)
  return { input: understood(fields, input), agent }
}

/** One tool for both whys: of a task, or of a lock that the agent waits for. */
function explainTool(tool: string, ofTask: Operation): Tool {
  const ofLock = registered('lock.explain')
  const doc = `${ofTask.doc} With name: why you do not have a lock yet.`
  const shown = listed(tool, doc, ofTask, { ...ofTask.input, ...ofLock.input })
  const { required: _, ...schema } = shown.inputSchema
  return {
    listed: { ...shown, inputSchema: { ...schema, type: 'object' } },
    read: (given) => {
      const operation = 'name' in given ? ofLock : ofTask
      return { operation, ...argumentsFor(operation.input, given) }
    },
  }
}

function unknownField(name: string, fields: Fields): Refusal {
  return new Refusal('invalid', `${name}: no such field`, {
    next: `Known fields: task_id, ${Object.keys(fields).slice(1).join(', ')}.`,
  })
}

function listed(name: string, doc: string, operation: Operation, all: Fields): Tool['listed'] {
  const isShown = (field: string) => !HIDDEN.has(field) && !HIDDEN.has(`${operation.name}.${field}`)
  const fields = Object.fromEntries(Object.entries(all).filter(([field]) => isShown(field)))
  const { properties, required = [] } = inputSchema(fields) as {
    properties: Record<string, JsonSchema>
    required?: string[]
  }
  const shown: Record<string, JsonSchema> = {}
  for (const [field, schema] of Object.entries(properties)) {
    const own = SHORT[`${operation.name}.${field}` as RegisteredField]
    const words = own ?? SHORT[field as FieldName] ?? fields[field]!.doc
    shown[spelled(field, operation)] = { ...brief(schema), ...(words && { description: words }) }
  }
  if (operation.effect === 'write') shown['agent_id'] = { type: 'string', description: WHO }
  const must = required.map((field) => spelled(field, operation))
  return {
    name,
    description: doc,
    inputSchema: { type: 'object', properties: shown, ...(must.length > 0 && { required: must }) },
    annotations: annotationsOf(operation),
  }
}

/** Their `id` is that of a conflict or a pair, and no task's. */
const OF_NO_TASK: ReadonlySet<string> = new Set<RegisteredName>([
  'conflict.list',
  'conflict.resolve',
  'duplicate.list',
  'duplicate.resolve',
])

export const spelled = (field: string, { name }: Operation) =>
  field === 'id' && !OF_NO_TASK.has(name) ? 'task_id' : field

/** The type alone: bounds are named when they are overstepped. */
function brief(schema: JsonSchema): JsonSchema {
  const branches = schema['anyOf'] as JsonSchema[] | undefined
  if (branches) return brief(branches.find(({ type }) => type !== 'null') ?? {})
  const { type, items } = schema
  const inner = items as JsonSchema | undefined
  return { ...(type !== undefined && { type }), ...(inner && { items: brief(inner) }) }
}

function annotationsOf({ name, effect }: Operation): Record<string, boolean> {
  if (effect === 'read') return { readOnlyHint: true }
  const destructiveHint = DESTRUCTIVE.has(name)
  return { destructiveHint, ...(IDEMPOTENT.has(name) && { idempotentHint: true }) }
}
