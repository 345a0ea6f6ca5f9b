import { isDeepStrictEqual } from 'node:util'
import type { ServerShape } from '../../../agents/record.ts'
import { HASHES } from './block.ts'
import { isObject, JsonText } from './json_text.ts'
import { blockPart, type InitPart, textPart } from './part.ts'

const NAME = 'leasehold'

interface Server {
  command: string
  args: string[]
}

/**
 * How any machine with this repository starts the server: no path of this one is in it. In one
 * that depends on leasehold, what npx would have to fetch is not started.
 */
export function serverFor(isDependency: boolean, tools?: 'core'): Server {
  const args = ['mcp', ...(tools ? ['--tools', tools] : [])]
  if (!isDependency) return { command: 'leasehold', args }
  return { command: 'npx', args: ['--no-install', 'leasehold', ...args] }
}

/** All that `init` ever wrote. */
const WRITTEN = [false, true].flatMap((is) => [serverFor(is), serverFor(is, 'core')])

function spelled({ command, args }: Server, shape: ServerShape): object {
  if (shape === 'mcp') return { type: 'local', command: [command, ...args] }
  return { command, args, ...(shape === 'trusted' && { trust: true }) }
}

export function serverPart(
  path: string,
  why: string,
  server: Server,
  shape: ServerShape,
): InitPart {
  const part = shape === 'toml' ? tomlServerPart : jsonServerPart
  return part(path, why, server, shape)
}

/** A server of that name that people changed is theirs. */
function jsonServerPart(path: string, why: string, server: Server, shape: ServerShape): InitPart {
  const key = shape === 'trusted' ? 'mcpServers' : shape
  const isOurs = (there: unknown) =>
    WRITTEN.some((each) => isDeepStrictEqual(there, spelled(each, shape)))
  return textPart({
    path,
    why,
    put: (before) => {
      const json = new JsonText(before, path)
      const there = json.object([key])?.[NAME]
      const wanted = spelled(server, shape)
      if (there === undefined || (isOurs(there) && !isDeepStrictEqual(there, wanted))) {
        json.set([key, NAME], wanted)
      }
      // opencode writes it there itself at its first start, and the file would be changed for git.
      if (shape === 'mcp' && json.value[SCHEMA[0]] === undefined) json.set([SCHEMA[0]], SCHEMA[1])
      return json.toString()
    },
    take: (now) => {
      const json = new JsonText(now, path)
      if (!isOurs(json.object([key])?.[NAME])) return now
      json.remove([key, NAME])
      const servers = json.value[key]
      if (isObject(servers) && Object.keys(servers).length === 0) json.remove([key])
      const left = Object.entries(json.value)
      const isEmpty = left.every(([name, value]) => name === SCHEMA[0] && value === SCHEMA[1])
      return isEmpty ? undefined : json.toString()
    },
  })
}

const SCHEMA = ['$schema', 'https://opencode.ai/config.json'] as const

const THEIRS = /^\s*(?:\[\s*)?mcp_servers\s*(?:=|\.\s*["']?leasehold["']?\s*[\].=])/m

/** By which a run finds its server; Codex gives a server no other variables than it names. */
const PASSED = [
  ...'AGENT DIR FENCE LOCK RUN STORE TASK TOKEN URL'.split(' ').map((name) => `LEASEHOLD_${name}`),
  'CODEX_HOME',
]

const listed = (texts: string[]) => `[${texts.map((each) => JSON.stringify(each)).join(', ')}]`

/** `.codex/config.toml`: a table at the end, between markers. One that people wrote is theirs. */
function tomlServerPart(path: string, why: string, { command, args }: Server): InitPart {
  const body = `[mcp_servers.${NAME}]
command = ${JSON.stringify(command)}
args = ${listed(args)}
env_vars = ${listed(PASSED)}
# Where nobody can be asked, a tool that asks is refused: leave this out to be asked.
default_tools_approval_mode = "approve"`
  return blockPart({ path, why, body, marks: HASHES, isTheirs: (others) => THEIRS.test(others) })
}
