import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, onTestFinished } from 'vitest'
import { BIN, sandbox, type Sandbox } from '../support/processes.ts'
import { finish, type Json, type Served, startDaemon } from './serving.ts'

/** `2025` opens with a handshake; of `2026` every request stands alone. */
export type Era = '2025' | '2026'

/** An agent that comes by MCP, with the official client. */
export class McpAgent {
  constructor(
    readonly client: Client,
    /** Of the process at the other end of the pipe; over HTTP there is none. */
    readonly pid: number | null,
  ) {}

  call(name: string, given: Json = {}): Promise<Json> {
    return this.client.callTool({ name, arguments: given })
  }

  /** Calls a tool, expects success, and returns what it gave as data. */
  async ok(name: string, given: Json = {}): Promise<Json> {
    const { isError, content, structuredContent } = await this.call(name, given)
    const { trust, ...said } = structuredContent
    const text = isError && content[0].text
    expect({ isError, text, trust }, name).toEqual({ text: undefined, trust: 'untrusted' })
    return said
  }

  async text(name: string, given: Json = {}): Promise<string> {
    return (await this.call(name, given)).content[0].text as string
  }

  /** Calls a tool, expects this refusal as data and in words, and returns it. */
  async refused(code: string, name: string, given: Json = {}): Promise<Json> {
    const { isError, content, structuredContent } = await this.call(name, given)
    const { error } = structuredContent
    expect({ isError, code: error?.code }, name).toEqual({ isError: true, code })
    expect(content[0].text).toBe(`Refused (${code}): ${error.message}\nNext: ${error.next}`)
    return error
  }
}

function clientOf(era: Era): Client {
  const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' }
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
}

interface StdioOptions {
  era?: Era
  flags?: string[]
  env?: Json
  cwd?: string
}

/** Starts `leasehold mcp` and talks to it through its pipe. */
export async function overStdio(
  place: Sandbox,
  { era = '2025', flags = [], env = {}, cwd = place.folder }: StdioOptions = {},
): Promise<McpAgent> {
  const client = clientOf(era)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', ...flags],
    env: { ...place.env, ...env } as Record<string, string>,
    cwd,
  })
  onTestFinished(() => client.close())
  await client.connect(transport)
  return new McpAgent(client, transport.pid)
}

/** Talks to `/mcp` of a daemon. */
export async function overHttp(
  url: string,
  token: string,
  { era = '2025', query = '' }: { era?: Era; query?: string } = {},
): Promise<McpAgent> {
  const client = clientOf(era)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  onTestFinished(() => client.close())
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`/mcp${query}`, url), { requestInit }),
  )
  return new McpAgent(client, null)
}

/** A daemon on a place of its own, until the test ends. */
export async function serving(): Promise<{ place: Sandbox; daemon: Served }> {
  const place = sandbox()
  onTestFinished(() => finish(place))
  return { place, daemon: await startDaemon(place) }
}
