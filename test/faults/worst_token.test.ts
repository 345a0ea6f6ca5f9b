import { readFileSync } from 'node:fs'
// reason: memory is looked at now and then while others work
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/operations/budget.ts'
import { send, type Served, startDaemon } from '../doors/serving.ts'
import { repository, type Repo } from '../hooks/agents.ts'
import { ROUNDS, type Running, TEST_CLI } from '../support/processes.ts'

const SECONDS = 60
const LATE_MS = 500
/** Whoever is not answered by then is taken to be locked out. */
const PATIENCE_MS = 5_000
const MEMORY_MB = 400
const WORST = fileURLToPath(new URL('../../dist/test/worst_token_agent.mjs', import.meta.url))

type Met = Record<string, Record<string, number>>

interface Measured {
  /** How long each call of somebody else took, in milliseconds. */
  calls: number[]
  hooks: number[]
  commands: number[]
  /** An empty program, started in the same moments: what of it is the machine's own. */
  bare: number[]
  memory_mb: number
  unguarded: string[]
  revoked_ms: number
  met: Met
}

const memoryOf = ({ running }: Served) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${running.pid}/status`, 'utf8'))![1]) / 1024

async function timed<T>(into: number[], step: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const done = await step()
  into.push(performance.now() - begun)
  return done
}

/** Somebody else at work: short calls, an agent's hook, a person's command. */
async function work(daemon: Served, repo: Repo, until_ms: number, found: Measured): Promise<void> {
  const token = await daemon.agentToken('bob')
  const headers = { 'content-type': 'application/json' }
  const call = async (name: string, input: object) => {
    const asked = { token, method: 'POST', headers, body: JSON.stringify(input) }
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const reply = await timed(found.calls, () => {
      return send(daemon.url, `/v1/${name}`, { ...asked, signal }).catch(() => undefined)
    })
    if (reply?.status !== 200) found.unguarded.push(`${name}: ${reply?.text ?? 'no answer'}`)
  }
  const calls = async (i: number) => {
    await call('lock.acquire', { name: `bob-${i}` })
    await call('reserve.touch', { paths: [`src/bob-${i}.ts`], mode: 'auto' })
    await call('lock.release', { name: `bob-${i}` })
    await call('task.list', { limit: 20 })
  }
  const { a, place } = repo
  a.env = { LEASEHOLD_TOKEN: token, LEASEHOLD_URL: daemon.url }
  for (let i = 0; performance.now() < until_ms && found.unguarded.length === 0; i += 1) {
    await calls(i)
    const hook = await timed(found.hooks, () => a.edit(`src/file-${i}.ts`))
    if (hook.code !== 0 || hook.err !== '') found.unguarded.push(hook.err)
    const add = await timed(found.commands, () => place.cli(['task', 'add', `of a person ${i}`]))
    if (add.code !== 0) found.unguarded.push(add.err)
    await timed(found.bare, () => a.sh(`${process.execPath} -e 0`))
    found.memory_mb = Math.max(found.memory_mb, memoryOf(daemon))
  }
}

async function watchMemory(daemon: Served, until_ms: number, found: Measured): Promise<void> {
  while (performance.now() < until_ms) {
    found.memory_mb = Math.max(found.memory_mb, memoryOf(daemon))
    await pause(100)
  }
}

/** One token at its worst beside somebody who works; at the end that token is revoked. */
async function beside(env: Record<string, string> = {}): Promise<Measured> {
  const repo = repository()
  const { place } = repo
  // The one with planted bugs to switch on.
  const program = [process.execPath, TEST_CLI]
  const daemon = await startDaemon(place, { program, env })
  onTestFinished(() => daemon.kill())
  const made = await place.ok(['token', 'create', '--role', 'agent', '--agent', 'mallory'])
  const found: Measured = {
    ...{ calls: [], hooks: [], commands: [], bare: [], unguarded: [], met: {} },
    ...{ memory_mb: 0, revoked_ms: 0 },
  }
  await daemon.post('lock.acquire', { name: 'worst-0', agent: 'carol', ttl_seconds: 3600 })
  const args = [daemon.url, made.token]
  const worst: Running = place.start(args, { program: [process.execPath, WORST] })
  onTestFinished(() => worst.kill('SIGKILL'))
  await worst.said(/^begun$/m)
  const until_ms = performance.now() + SECONDS * 1000
  await Promise.all([work(daemon, repo, until_ms, found), watchMemory(daemon, until_ms, found)])
  if (found.unguarded.length > 0) return found
  const begun = performance.now()
  // A daemon that does not answer in time is gone past, which is told.
  const { code, err } = await place.cli(['token', 'revoke', made.id, '--force'])
  found.revoked_ms = performance.now() - begun
  if (code !== 0 || err !== '') found.unguarded.push(err)
  worst.child.stdin!.end()
  const { out } = await worst.ended
  found.met = JSON.parse(out.trimEnd().split('\n').at(-1)!) as Met
  return found
}

const at = (times: number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ??
  NaN

const shown = (times: number[]) =>
  `${times.length} × p50 ${at(times, 0.5).toFixed(0)} p99 ${at(times, 0.99).toFixed(0)} ` +
  `max ${at(times, 1).toFixed(0)} ms`

function say({ calls, hooks, commands, bare, memory_mb, revoked_ms, met }: Measured): void {
  const lines = [
    `calls of others: ${shown(calls)}`,
    `hooks: ${shown(hooks)}; commands: ${shown(commands)}; bare node: ${shown(bare)}`,
    `memory at most ${memory_mb.toFixed(0)} MB; token revoke ${revoked_ms.toFixed(0)} ms`,
    JSON.stringify(met),
  ]
  process.stderr.write(`${lines.join('\n')}\n`)
}

/** What is broken of R49, in sentences. */
function faultsOf(found: Measured): string[] {
  const { calls, hooks, commands, memory_mb, revoked_ms, unguarded, met } = found
  const budgets = new Set(Object.values(met).flatMap((ways) => Object.keys(ways)))
  const late = (what: string, times: number[]) =>
    at(times, 0.99) > LATE_MS ? [`${what} come late: ${shown(times)}`] : []
  return [
    ...late('calls of others', calls),
    ...late('hooks of others', hooks),
    ...late('commands of others', commands),
    ...late('a revocation', [revoked_ms]),
    ...(memory_mb > MEMORY_MB ? [`${memory_mb.toFixed(0)} MB`] : []),
    ...unguarded.map((each) => `refused or unguarded: ${each}`),
    ...(Object.keys(LIMITS).some((each) => budgets.has(each)) ? [] : ['no budget was ever met']),
  ]
}

const PATIENT = { timeout: 60_000 + SECONDS * 5_000 }

// reason: takes minutes, and the machine to itself; doors/budgets has each budget in every run
describe.skipIf(ROUNDS === 1)('one token', () => {
  test('at its worst keeps nobody else waiting, and can be revoked', PATIENT, async () => {
    const found = await beside()
    say(found)
    expect(faultsOf(found)).toEqual([])
  })

  // A check that cannot object proves nothing: without budgets and turns somebody is kept waiting.
  test('without budgets keeps others waiting', PATIENT, async () => {
    const found = await beside({ LEASEHOLD_PLANT: 'R49' })
    say(found)
    expect(faultsOf(found)).not.toEqual([])
  })
})
