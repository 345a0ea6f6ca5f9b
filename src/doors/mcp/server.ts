import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server'
import { attempt } from '../../core/attempt.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Operation } from '../../operations/operation.ts'
import { type AnswerOf, registered, type RegisteredName } from '../../operations/registry.ts'
import { answerOf, refusalAnswer, wordsOf } from './answers.ts'
import type { Arguments } from '../../operations/spelling.ts'
import { INSTRUCTIONS, PROMPT, RULES } from './rules.ts'
import { type Tool, toolsIn } from './tools.ts'

/** What a client says of a call besides its arguments. */
export type CallMeta = Readonly<Record<string, unknown>>

/** Calls an operation for an agent; undefined: for the agent that the door found. */
export type ToolAsk = (
  operation: Operation,
  input: Arguments,
  agent: unknown,
  signal: AbortSignal,
  meta?: CallMeta,
) => Promise<unknown>

export type ToolChoice = 'core' | 'all'

/** What is wrong with the store, if that is known: it is read as far as it can be. */
type SeeDamage = () => Promise<string | undefined>

const READY = 'leasehold://tasks/ready'
const TASK = /^leasehold:\/\/task\/([^/?#]+)$/

const RESOURCES = [
  { uri: READY, name: 'ready tasks', description: 'Next first.', mimeType: 'text/plain' },
]
const TEMPLATES = [{ uriTemplate: 'leasehold://task/{id}', name: 'task', mimeType: 'text/plain' }]

/** Clients may keep a list for this long: only another version of the program has another list. */
const LISTS = { ttlMs: 3_600_000, cacheScope: 'private' } as const

/**
 * A server for one connection, or for one request: it keeps nothing, so making one is cheap. The
 * lists are made once for all of them.
 */
export function mcpServer(
  ask: ToolAsk,
  version: string,
  choice: ToolChoice,
  damage: SeeDamage,
  warning = '',
): Server {
  const server = new Server(
    { name: 'leasehold', version },
    {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      instructions: `${warning}${INSTRUCTIONS}`,
      cacheHints: {
        'tools/list': LISTS,
        'prompts/list': LISTS,
        'resources/list': LISTS,
        'resources/templates/list': LISTS,
      },
    },
  )
  const tools = choices(choice)
  server.setRequestHandler('tools/list', () => ({ tools: tools.list }))
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
    const tool = tools.byName.get(params.name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No tool ${params.name}`)
    const { _meta: meta = {} } = mcpReq
    const asking: ToolAsk = (operation, input, agent, signal) =>
      ask(operation, input, agent, signal, meta)
    return callTool(tool, params.arguments ?? {}, asking, mcpReq.signal, damage)
  })
  server.setRequestHandler('resources/list', () => ({ resources: RESOURCES }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: TEMPLATES }))
  server.setRequestHandler('resources/read', ({ params }, { mcpReq }) =>
    readResource(params.uri, ask, mcpReq.signal),
  )
  server.setRequestHandler('prompts/list', () => ({ prompts: [PROMPT] }))
  server.setRequestHandler('prompts/get', ({ params }) => {
    if (params.name === PROMPT.name) return RULES
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No prompt ${params.name}`)
  })
  return server
}

interface Choices {
  list: Tool['listed'][]
  byName: Map<string, Tool>
}

const made: Partial<Record<ToolChoice, Choices>> = {}

function choices(choice: ToolChoice): Choices {
  const tools = toolsIn(choice)
  return (made[choice] ??= {
    list: tools.map(({ listed }) => listed),
    byName: new Map(tools.map((tool) => [tool.listed.name, tool])),
  })
}

async function callTool(
  tool: Tool,
  given: Arguments,
  ask: ToolAsk,
  signal: AbortSignal,
  damage: SeeDamage,
): Promise<CallToolResult> {
  try {
    const { operation, input, agent } = tool.read(given)
    const answer = answerOf(operation.name, (await ask(operation, input, agent, signal)) as object)
    const wrong = operation.effect === 'read' ? await damage() : undefined
    if (wrong !== undefined) answer.content.push({ type: 'text', text: warningOf(wrong) })
    return answer
  } catch (error) {
    return refusalAnswer(error)
  }
}

const warningOf = (wrong: string) =>
  `Warning: ${wrong}\nThis answer may lack what was written last. Tell your user.`

async function readResource(
  uri: string,
  ask: ToolAsk,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const read = async <N extends RegisteredName>(name: N, input: Arguments) =>
    (await ask(registered(name), input, undefined, signal)) as AnswerOf<N>
  const shown = <N extends RegisteredName>(name: N, answer: AnswerOf<N> & object) => ({
    contents: [{ uri, mimeType: 'text/plain', text: wordsOf(name, answer)! }],
  })
  try {
    if (uri === READY) {
      return shown('task.list', await read('task.list', { ready: true }))
    }
    const id = TASK.exec(uri)?.[1]
    if (id === undefined) throw new ResourceNotFoundError(uri)
    return shown('task.get', await read('task.get', { id: decoded(id) }))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.code === 'not_found' || error.code === 'invalid') throw new ResourceNotFoundError(uri)
    throw new ProtocolError(ProtocolErrorCode.InternalError, error.message, error.toJSON().error)
  }
}

/** Where it is not a URI part, it is no id either: the operation says so. */
const decoded = (part: string) => attempt(() => decodeURIComponent(part), part)
