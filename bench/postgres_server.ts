import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Client } from 'pg'
import { startPostgres } from '../test/support/postgres_server.ts'

/** What a process did: how many jobs it completed, and when it began and ended, by one clock. */
export interface Drained {
  done: number
  first_ms: number
  last_ms: number
  /** How long each claim waited for its answer, where that is told. */
  waits_ms?: number[]
  /** Of each process, where that is told. */
  cpu_ms?: number[]
  /** Commits in all, where that is told: the fewer per job, the better. */
  batches?: number
}

export interface Bench {
  /** Makes a database, lets `fill` fill it, and keeps it as it is for `copyOf`. */
  template(name: string, fill: (url: string) => Promise<void>): Promise<void>
  /** A fresh copy, with nothing left to be written of what was there before. */
  copyOf(name: string): Promise<string>
  drop(url: string): Promise<void>
  /** What the server has written into its log. */
  said(): string
  stop(): Promise<void>
}

/** One server for all who are compared; every round works on a copy of a filled database. */
export async function startBench(): Promise<Bench> {
  const server = await startPostgres({ fsync: true })
  const admin = new Client({ connectionString: server.url })
  // Whoever asks next is told; without a listener, the process would end here.
  admin.on('error', () => undefined)
  await admin.connect()
  const urlOf = (database: string) =>
    Object.assign(new URL(server.url), { pathname: database }).href
  let copies = 0
  return {
    template: async (name, fill) => {
      await admin.query(`CREATE DATABASE ${name}`)
      await fill(urlOf(name))
      await ask(urlOf(name), 'VACUUM (ANALYZE)')
    },
    copyOf: async (name) => {
      const copy = `${name}_${(copies += 1)}`
      await admin.query(`CREATE DATABASE ${copy} TEMPLATE ${name}`)
      await admin.query('CHECKPOINT')
      return urlOf(copy)
    },
    drop: async (url) => {
      await admin.query(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`)
    },
    said: () => server.said(),
    stop: async () => {
      await admin.end().catch(() => undefined)
      await server.stop()
    },
  }
}

/** One statement on a connection of its own. */
export async function ask(url: string, text: string): Promise<unknown[][]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query({ text, rowMode: 'array' })
    return rows as unknown[][]
  } finally {
    await client.end()
  }
}

interface DrainOptions {
  /** What `run.ts` is started with. */
  args: string[]
  processes: number
  /** A newer Node, for peers that need one. */
  node?: string
}

/** Starts processes, lets them begin together, and gathers what they did. */
export async function drain({ args, processes, node }: DrainOptions): Promise<Drained> {
  const started = Array.from({ length: processes }, (_, i) =>
    spawn(node ?? process.execPath, [process.argv[1]!, ...args, String(i)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  )
  try {
    await Promise.all(started.map(lineOf))
    for (const each of started) each.stdin.write('go\n')
    const lines = await Promise.all(started.map(lineOf))
    const parts = lines.map((line) => JSON.parse(line) as Drained)
    return {
      done: parts.reduce((sum, part) => sum + part.done, 0),
      first_ms: Math.min(...parts.map((part) => part.first_ms)),
      last_ms: Math.max(...parts.map((part) => part.last_ms)),
      waits_ms: parts.flatMap((part) => part.waits_ms ?? []),
      cpu_ms: parts.flatMap((part) => part.cpu_ms ?? []),
      batches: parts.reduce((sum, part) => sum + (part.batches ?? 0), 0),
    }
  } finally {
    for (const each of started) {
      each.stdin.end()
      each.kill()
    }
  }
}

async function lineOf(child: ChildProcess): Promise<string> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a process of the benchmark ended with ${code}`)
  })
  const [line] = (await Promise.race([once(createInterface(child.stdout!), 'line'), ended])) as [
    string,
  ]
  return line
}

/** The other side of `drain`: says that it is ready, and begins when all are. */
export async function awaitStart(): Promise<void> {
  console.log('ready')
  await once(process.stdin, 'data')
}

/** Milliseconds that one claim in a hundred waited for longer; 0 where that is not told. */
export const p99Of = ({ waits_ms = [] }: Drained) =>
  waits_ms.toSorted((a, b) => a - b)[Math.floor(waits_ms.length * 0.99)] ?? 0

export const rateOf = ({ done, first_ms, last_ms }: Drained) => (done / (last_ms - first_ms)) * 1000
