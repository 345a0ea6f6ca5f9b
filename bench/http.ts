import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { createToken } from '../src/core/token.ts'
import { sha256 } from '../src/machine/digest.ts'
import { callerOf, fillStore, openStore } from './claims.ts'
import { type Goal, median, printGoals, printTable, progress, whole } from './report.ts'

const COMMAND = resolve('bin/leasehold')
const CONNECTIONS = 64
const SHARE_MIN = { claim: 0.6, claim_with_id: 0.5 }
const SECONDS = 2
const ROUNDS = 5
const ROUNDS_QUICK = 2
/** More than a server can claim in one round. */
const TASKS_PER_ROUND = 36_000

/** What is asked in turn. The SDK sends request ids; what they cost is shown beside the goal. */
const ASKS = {
  echo: { path: '/echo', ids: false },
  claim: { path: '/v1/task.claim', ids: false },
  claim_with_id: { path: '/v1/task.claim', ids: true },
} as const
type Series = keyof typeof ASKS

export interface Http {
  rounds: number
  rates: Record<Series, number>
  goals: Goal[]
}

export interface Server {
  child: ChildProcess
  url: string
  secret: string
}

/**
 * Claims over HTTP against an echo (`echo.ts`): the same connections, headers, body, checks and
 * access token, without an operation. In turn, so that noise hits both alike; medians.
 */
export async function measureHttp(quick: boolean): Promise<Http> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const rounds = quick ? ROUNDS_QUICK : ROUNDS
  const tasks = (rounds + 1) * TASKS_PER_ROUND
  progress(`creating ${whole(tasks)} tasks`)
  const path = await fillStore(folder, tasks)
  const tokens = await makeTokens(path, rounds + 1)
  chmodSync(path, 0o600)
  const server = await startServer(folder, path)
  const echo = await startEcho(path, server.secret)
  try {
    const rates: Record<Series, number[]> = { echo: [], claim: [], claim_with_id: [] }
    // The first round warms up the compiler, as in a daemon that has run for a while.
    for (let round = 0; round <= rounds; round += 1) {
      for (const name of Object.keys(ASKS) as Series[]) {
        progress(`round ${round} of ${rounds}: ${name}`)
        const rate = await rateOf((name === 'echo' ? echo : server).url, ASKS[name], tokens[round]!)
        if (round > 0) rates[name].push(rate)
      }
    }
    progress('')
    const medians = Object.entries(rates).map(([key, each]) => [key, median(each)])
    const found = Object.fromEntries(medians) as Http['rates']
    const goal = (of: keyof typeof SHARE_MIN, what: string): Goal => {
      const [ratio, least] = [found[of] / found.echo, SHARE_MIN[of]]
      const name = `${what} / echo behind the same checks, ${CONNECTIONS} connections`
      return { name, ratio, goal: `≥ ${least}`, met: ratio >= least }
    }
    const goals = [goal('claim', 'claims'), goal('claim_with_id', 'claims with a request id')]
    return { rounds, rates: found, goals }
  } finally {
    await stopServer(echo)
    await stopServer(server)
    rmSync(folder, { recursive: true })
  }
}

/** One for each connection of each round: what a single token may hold is bounded. */
async function makeTokens(path: string, rounds: number): Promise<string[][]> {
  const store = openStore(path)
  const make = async (agent: string) => {
    const secret = randomBytes(32).toString('base64url')
    const token = { hash: sha256(secret), role: 'agent' as const, agent, scope: null, ttl_ms: null }
    await store.write((view) => createToken(view, token, { ...callerOf(0), admin: true }))
    return secret
  }
  const made = Array.from({ length: rounds }, (_, round) =>
    Promise.all(Array.from({ length: CONNECTIONS }, (__, i) => make(`bench-${round}-${i}`))),
  )
  const tokens = await Promise.all(made)
  await store.close()
  return tokens
}

export async function stopServer({ child }: Server): Promise<void> {
  child.kill('SIGTERM')
  await once(child, 'close')
}

/** A daemon of its own, on a free port. */
export async function startServer(
  folder: string,
  path: string,
  role: 'agent' | 'admin' = 'agent',
): Promise<Server> {
  const env = {
    ...process.env,
    LEASEHOLD_DIR: folder,
    LEASEHOLD_STORE: `sqlite:${path}`,
    LEASEHOLD_TRUST_CONFIG: 'yes',
  }
  const child = spawn(process.execPath, [COMMAND, '--json', 'serve', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { url } = JSON.parse(line) as { url: string }
  const args = [COMMAND, '--json', 'token', 'create', '--role', role, '--agent', 'bench']
  const made = execFileSync(process.execPath, args, { env, encoding: 'utf8' })
  return { child, url, secret: (JSON.parse(made) as { token: string }).token }
}

/** The echo on the same store, in a process of its own as the daemon is. */
async function startEcho(path: string, secret: string): Promise<Server> {
  const child = spawn(process.execPath, [process.argv[1]!, 'echo', path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { child, secret, url: (JSON.parse(line) as { url: string }).url }
}

/** From a process of its own, or the server would share its thread with those who ask. */
async function rateOf(
  url: string,
  { path, ids }: (typeof ASKS)[Series],
  secrets: string[],
): Promise<number> {
  const args = [url, path, ids, SECONDS].map(String)
  const child = spawn(process.execPath, [process.argv[1]!, 'load', ...args], {
    env: { ...process.env, LEASEHOLD_TOKENS: secrets.join() },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return (JSON.parse(line) as { rate: number }).rate
}

export function printHttp({ rounds, rates, goals }: Http): void {
  console.log(`\nHTTP, requests per second, median of ${rounds} rounds of ${SECONDS} s`)
  printTable([
    ['echo', whole(rates.echo)],
    ['task.claim', whole(rates.claim)],
    ['task.claim with a request id', whole(rates.claim_with_id)],
  ])
  printGoals(goals)
}
