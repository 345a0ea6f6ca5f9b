import { type Caller, leaseUnder } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { agentId } from '../operations/fields.ts'
import { parseInput } from '../operations/operation.ts'
import { loginName } from '../machine/login.ts'
import { host, ownProcess } from '../machine/process.ts'
import { type Daemon, findDaemon } from '../reach/server_file.ts'
import { Asker } from './asker.ts'
import { type Client, clientFor } from './client.ts'
import { Fences } from './fences.ts'
import { HttpTransport } from './http.ts'
import type { Transport } from './transport.ts'

const RETRY_SECONDS = 15

/** Where to connect to, and as whom. What is left out is found as the command line finds it. */
export interface ConnectOptions {
  /** A server's address, with the token it gave out. */
  url?: string
  token?: string
  /** Opens the store in this process, whether or not a server runs. */
  embedded?: boolean
  /** The state folder (default: `LEASEHOLD_DIR`, the nearest `.leasehold/`, `~/.leasehold`). */
  dir?: string
  /** Another store than the folder's own: `sqlite:PATH` or `file:FOLDER`. */
  store?: string
  /** Who is asking (default: `LEASEHOLD_AGENT`, the agent of the token, `sdk:<login>@<host>`). */
  agent?: string
  /** On a store of this login: may do what only an admin may, as `--force` does. */
  admin?: boolean
  /** How long a call goes on trying while nobody answers (default 15). */
  retry_seconds?: number
}

/**
 * Connects: to `url` with `token`; else to the server that runs on the state folder; else to the
 * store itself, in this process. Nothing is sent before the first call.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const env = environmentFor(options)
  const under = leaseUnder(env)
  const transport = await transportFor(options, env)
  const given = options.agent ?? env['LEASEHOLD_AGENT']
  if (given !== undefined) parseInput({ agent: agentId }, { agent: given })
  const { isLocal } = transport
  const who: Caller = {
    agent: given ?? (isLocal ? `sdk:${loginName()}@${host}` : ''),
    given: given !== undefined,
    process: isLocal ? ownProcess() : null,
    admin: options.admin ?? false,
    under,
  }
  const retry_ms = (options.retry_seconds ?? RETRY_SECONDS) * 1000
  return clientFor(new Asker(transport, who, new Fences(under), retry_ms))
}

function environmentFor({ dir, store, token }: ConnectOptions): NodeJS.ProcessEnv {
  const env = { ...process.env }
  if (dir !== undefined) env['LEASEHOLD_DIR'] = dir
  if (store !== undefined) env['LEASEHOLD_STORE'] = store
  if (token !== undefined) env['LEASEHOLD_TOKEN'] = token
  return env
}

async function transportFor(options: ConnectOptions, env: NodeJS.ProcessEnv): Promise<Transport> {
  if (options.url !== undefined) return remote(options.url, env['LEASEHOLD_TOKEN'])
  // Loaded here: who goes to a server by its address does without any store.
  const { folderOf, placeOf } = await import('../stores/open.ts')
  const place = placeOf(env, process.cwd())
  const find = () => findDaemon(env, folderOf(place))
  const daemon = options.embedded ? undefined : find()
  const openStore = async () => new (await import('./embedded.ts')).EmbeddedTransport(place)
  if (!daemon) return openStore()
  return new HttpTransport(daemon, find, openStore)
}

function remote(url: string, secret: string | undefined): Transport {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new Refusal('invalid', 'url is not an address of a server', {
      next: 'Give one like http://127.0.0.1:4747.',
    })
  }
  if (!secret) {
    throw new Refusal('unauthorized', `No token for ${url}`, {
      next: 'Pass token, or set LEASEHOLD_TOKEN. Make one: leasehold token create --role agent',
    })
  }
  const server: Daemon = { url, secret, isOurs: false }
  return new HttpTransport(server, () => server)
}
