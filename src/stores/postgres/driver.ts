import { Client } from 'pg'

/** PostgreSQL over the wire. Nothing else in the project names the package that speaks it. */

export type Value = string | number | null

/** Rows as arrays of text, null where there is no value: the codecs know what they mean. */
export type TextRow = (string | null)[]

export interface Connection {
  /** Statements without values, in one round trip; the rows of the last one. */
  run(text: string, silent_ms?: number): Promise<TextRow[]>
  /** A statement with bound values. One with a name is parsed and planned once per connection. */
  query(text: string, values: Value[], name?: string): Promise<TextRow[]>
  readonly isLost: boolean
  /** What the server calls this session. */
  readonly pid: string
  /** What it was marked with before we had it; nothing, unless a pooler has given it to others. */
  readonly mark: string
  /** Whether the server itself greeted us with that number: a pooler makes up one of its own. */
  readonly isDirect: boolean
  /** Called for every notification; `payload` is what was said. */
  onNotification(hear: (payload: string) => void): void
  onLost(tell: () => void): void
  close(): Promise<void>
}

interface ConnectOptions {
  url: string
  timeout_ms: number
  /** A server that is silent for longer is out of reach: TCP alone would wait a quarter hour. */
  silent_ms: number
  /** Run at the start of every session; the last statement gives its name, and its mark. */
  settings: string
}

const AS_TEXT = { getTypeParser: () => (text: string) => text }

interface Answer {
  rows: TextRow[]
}

export async function connect(options: ConnectOptions): Promise<Connection> {
  const client = new Client({
    connectionString: options.url,
    application_name: 'leasehold',
    connectionTimeoutMillis: options.timeout_ms,
    query_timeout: options.silent_ms,
    // What is asked before an answer has come is sent along: one round trip for both.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
  })
  const state = { lost: false, tell: () => {} }
  const lose = () => {
    if (state.lost) return
    state.lost = true
    state.tell()
  }
  // Without a listener, a server that goes away would end the process.
  client.on('error', lose)
  client.on('end', lose)
  let asked = 0
  const ask = async (query: object): Promise<TextRow[]> => {
    asked += 1
    return answerTo(query).finally(() => (asked -= 1))
  }
  const answerTo = async (query: object): Promise<TextRow[]> => {
    // Several statements give several answers, which the driver's types do not know.
    const config = { ...query, rowMode: 'array', types: AS_TEXT } as unknown as string
    const answer = (await client.query(config).catch((error: Error) => {
      // Whatever is asked next would wait behind this one.
      if (/read timeout/.test(error.message)) cut(client)
      throw error
    })) as unknown as Answer | Answer[]
    return [answer].flat().at(-1)?.rows ?? []
  }
  let row: TextRow | undefined
  try {
    await client.connect()
    row = (await ask({ text: options.settings }))[0]
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
  return {
    ...sessionOf(client, row),
    run: (text, silent_ms) => ask({ text, ...(silent_ms && { query_timeout: silent_ms }) }),
    query: (text, values, name) => ask({ text, values, ...(name !== undefined && { name }) }),
    get isLost() {
      return state.lost
    },
    onNotification: (hear) => client.on('notification', ({ payload }) => hear(payload ?? '')),
    onLost: (tell) => (state.tell = tell),
    close: async () => {
      // An orderly end would wait for answers that may never come.
      if (asked > 0) cut(client)
      else await client.end().catch(() => undefined)
    },
  }
}

/** Of what the settings have answered. */
function sessionOf(client: Client, row: TextRow | undefined) {
  const { processID } = client as unknown as { processID: number | null }
  const [pid, mark] = [row?.[0] ?? '', row?.[1] ?? '']
  return { pid, mark, isDirect: processID === Number(pid) }
}

function cut(client: Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}
