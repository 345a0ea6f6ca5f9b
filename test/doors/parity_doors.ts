import { onTestFinished } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import { connect } from '../../src/index.ts'
import { call } from '../../src/operations/call.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { sandbox } from '../support/inside.ts'
import type { Sandbox } from '../support/processes.ts'
import { callerOf } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { type McpAgent, overHttp, overStdio } from './mcp_agent.ts'
import { finish, type Json, type Reply, send, type Served, startDaemon } from './serving.ts'

export interface Refused {
  code: string
  message: string
  next: string
  details: Json
  actions?: Json
}

export type Outcome = { answer: Json } | { refused: Refused }

/** One way to ask. Undefined: this door does not have that operation, or cannot say that input. */
export interface Door {
  ask(operation: Operation, agent: string, input: Json): Promise<Outcome> | undefined
}

/** A door on a store of its own, and that store for what the door cannot do. */
export interface Opened {
  door: Door
  store: Store
}

/** Which store a door is opened on: this is all that a user changes. */
export type Kind = 'sqlite' | 'postgres'

const AGENTS = ['ada', 'bob', 'cy', 'dot', 'eli']

export function placeOn(kind: Kind): Sandbox {
  const place = sandbox()
  if (kind === 'postgres') place.env['LEASEHOLD_STORE'] = postgresUrl(place.folder)
  return place
}

/** The store of a place, as every program in that place would open it. */
export function storeOf(place: Sandbox): Store {
  const store = openStore(placeOf(place.env, place.folder))
  onTestFinished(() => store.close())
  return store
}

function openedOn(place: Sandbox, door: Door): Opened {
  return { door, store: storeOf(place) }
}

/** The call that all doors end in, without any door. */
export function directly(store: Store): Door {
  return {
    ask: (operation, agent, input) => {
      const caller = callerOf(agent, { admin: operation.role === 'admin' })
      return outcomeOf(call(store, operation, input as Record<string, unknown>, caller))
    },
  }
}

async function outcomeOf(asked: Promise<unknown>): Promise<Outcome> {
  try {
    return { answer: await asked }
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.toJSON().error }
    throw error
  }
}

interface Wire {
  place: Sandbox
  daemon: Served
  tokens: Map<string, string>
}

async function served(kind: Kind): Promise<Wire> {
  const place = placeOn(kind)
  onTestFinished(() => finish(place))
  const daemon = await startDaemon(place)
  const tokens = new Map<string, string>()
  for (const agent of AGENTS) tokens.set(agent, await daemon.agentToken(agent))
  return { place, daemon, tokens }
}

/** An agent's own token; what is for admins is asked by one who says whom it asks for. */
function overWire(
  { daemon, tokens }: Wire,
  how: (operation: Operation, input: Json, token: string) => Promise<Reply>,
): Door {
  return {
    ask: async (operation, agent, input) => {
      const admin = operation.role === 'admin'
      const said = admin ? { ...input, agent } : input
      const { status, json } = await how(
        operation,
        said,
        admin ? daemon.secret : tokens.get(agent)!,
      )
      return status === 200 ? { answer: json } : { refused: json.error }
    },
  }
}

/** The command line's words for an input; undefined where it has none. */
export function argvOf({ command, input: fields }: Operation, input: Json): string[] | undefined {
  if (!command) return undefined
  const [noun, verb, ...words] = command.split(' ') as [string, string | undefined, ...string[]]
  const positional = words.map((word) => word.replaceAll(/[[\]…]/g, ''))
  // `stats` is a word of its own.
  const argv = verb === undefined ? [noun] : [noun, verb]
  for (const [name, value] of Object.entries(input)) {
    if (positional.includes(name) || value === undefined) continue
    const flag = fields[name]?.flag
    const isList = Array.isArray(value)
    if (!flag || name === 'process' || isList !== flag.includes('...')) return undefined
    const [word] = flag.split(' ')
    if (flag.includes('<yes|no>')) argv.push(`${word}=${value ? 'yes' : 'no'}`)
    else if (value === true) argv.push(word!)
    else if (isList) argv.push(...(value as string[]).map((each) => `${word}=${each}`))
    else if (value === false) return undefined
    else if (value === null && !flag.includes('null')) return undefined
    else argv.push(`${word}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  }
  const last = positional.flatMap((name) => (input[name] === undefined ? [] : [input[name]].flat()))
  if (last.some((each) => typeof each !== 'string')) return undefined
  if (words.some((word, i) => !word.startsWith('[') && input[positional[i]!] === undefined)) {
    return undefined
  }
  // One argument may have 128 KiB.
  if (last.some((each) => String(each).length > 100_000)) return undefined
  if (argv.some((each) => each.length > 100_000)) return undefined
  return [...argv, '--', ...last.map(String)]
}

function byCommand(place: Sandbox): Door {
  return {
    ask: (operation, agent, input) => {
      const argv = argvOf(operation, input)
      if (!argv) return undefined
      return place.cli(['--json', '--agent', agent, ...argv]).then((ended) => {
        // A look that finds something held is answered, and still exits as a refusal does.
        return ended.err === '' ? { answer: ended.json } : { refused: ended.error }
      })
    },
  }
}

function byTool(agents: Map<string, McpAgent>): Door {
  return {
    ask: ({ tool, name }, agent, input) => {
      // One tool for both whys; which one is meant, the name of a lock tells.
      const ofLock = name === 'lock.explain' && 'name' in input
      const called = ofLock ? 'explain' : tool
      if (!called) return undefined
      return agents
        .get(agent)!
        .call(called, input)
        .then(({ isError, structuredContent: { trust: _, ...said } }) => {
          return isError ? { refused: said.error } : { answer: said }
        })
    },
  }
}

async function agentsBy(
  open: (agent: string) => Promise<McpAgent>,
): Promise<Map<string, McpAgent>> {
  const opened = await Promise.all(AGENTS.map(async (agent) => [agent, await open(agent)] as const))
  return new Map(opened)
}

export const DOORS: Record<string, (kind: Kind) => Promise<Opened>> = {
  'HTTP, POST': async (kind) => {
    const wire = await served(kind)
    const door = overWire(wire, ({ name }, input, token) =>
      wire.daemon.post(name, input, { token }),
    )
    return openedOn(wire.place, door)
  },
  'HTTP, GET for reads': async (kind) => {
    const wire = await served(kind)
    const post = overWire(wire, ({ name }, input, token) =>
      wire.daemon.post(name, input, { token }),
    )
    const get = overWire(wire, ({ name }, input, token) => {
      const query = Object.entries(input as Record<string, unknown>).map(([key, value]) => {
        const text = typeof value === 'string' ? value : JSON.stringify(value)
        return `${key}=${encodeURIComponent(text)}`
      })
      return send(wire.daemon.url, `/v1/${name}?${query.join('&')}`, { token })
    })
    const door: Door = {
      ask: (operation, agent, input) => {
        if (operation.effect === 'write') return post.ask(operation, agent, input)
        // In a query everything is text, and text is what many fields take.
        if (Object.values(input as object).some(Array.isArray)) return undefined
        return get.ask(operation, agent, input)
      },
    }
    return openedOn(wire.place, door)
  },
  'commands through the daemon': async (kind) => {
    const { place } = await served(kind)
    return openedOn(place, byCommand(place))
  },
  'commands on the store': async (kind) => {
    const place = placeOn(kind)
    return openedOn(place, byCommand(place))
  },
  'MCP over stdio': async (kind) => {
    const place = placeOn(kind)
    const agents = await agentsBy((agent) => overStdio(place, { flags: ['--agent', agent] }))
    return openedOn(place, byTool(agents))
  },
  'MCP over HTTP': async (kind) => {
    const { place, daemon, tokens } = await served(kind)
    const agents = await agentsBy((agent) => overHttp(daemon.url, tokens.get(agent)!))
    return openedOn(place, byTool(agents))
  },
  'the SDK': async (kind) => {
    const { place, daemon, tokens } = await served(kind)
    const { url, secret } = daemon
    const door: Door = {
      // A client for each ask: one that remembers fences would say more than it was told to.
      ask: async ({ name, role }, agent, input) => {
        const token = role === 'admin' ? secret : tokens.get(agent)!
        const client = await connect({ url, token, ...(role === 'admin' && { agent }) })
        const [noun, verb] = name.split('.') as ['lock', 'status']
        return outcomeOf(client[noun][verb](input)).finally(() => client.close())
      },
    }
    return openedOn(place, door)
  },
}
