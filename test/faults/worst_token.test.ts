import { readFileSync, writeFileSync } from 'node:fs'
// reason: memory is looked at now and then while others work
import { setTimeout as pause } from 'node:timers/promises'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/operations/budget.ts'
import { send, type Served, startDaemon, waitedFor } from '../doors/serving.ts'
import { repository, type Repo } from '../hooks/agents.ts'
import { ROUNDS, type Running, TEST_CLI } from '../support/processes.ts'

const SECONDS = 60
const LATE_MS = 500
/** Whoever is not answered by then is taken to be locked out. */
const PATIENCE_MS = 5_000
const MEMORY_MB = 400
const WORST = fileURLToPath(new URL('../../dist/test/worst_token_agent.mjs', import.meta.url))

type Met = Record<string, Record<string, number>>

/**
 * How long each took, in milliseconds. Three programs want two processors here, and other work may
 * want them too, so a part of that is spent in line for one, where nobody can be quicker. The
 * kernel counts it. No moment is taken off twice: of a call it is what the server stood in line, of
 * a program that was started what that did before it asked, and what either did after that.
 */
interface Times {
  all: number[]
  /** Without what was spent in line for a processor. */
  own: number[]
}

const times = (): Times => ({ all: [], own: [] })

interface Measured {
  /** What somebody else asked for. */
  calls: Times
  hooks: Times
  commands: Times
  /** An empty program, started in the same moments. */
  bare: Times
  memory_mb: number
  unguarded: string[]
  revoked: Times
  met: Met
}

const memoryOf = ({ running }: Served) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${running.pid}/status`, 'utf8'))![1]) / 1024

/**
 * A program says at its end how long it stood in line for a processor; and, from when it has first
 * asked, how long the server did, if that is more: it waits for the server then.
 */
const NOTE = `const { appendFileSync, readFileSync } = require('node:fs')
const { Socket } = require('node:net')
const waited = (pid) => Number(readFileSync('/proc/' + pid + '/schedstat', 'utf8').split(' ')[1])
const both = () => [waited('self'), waited(process.env.SERVER)]
const { connect } = Socket.prototype
let asked
Socket.prototype.connect = function (...given) {
  asked ??= both()
  return connect.apply(this, given)
}
process.on('exit', () => {
  const [own, server] = both()
  const [before, then] = asked ?? [own, server]
  const waited_ns = before + Math.max(own - before, server - then)
  appendFileSync(process.env.WAITED, waited_ns + '\\n')
})`

/** The environment in which programs say it, and the sum of what they have said. */
function noting({ place }: Repo, server: number) {
  const [program, said] = [place.path('note.cjs'), place.path('waited')]
  writeFileSync(program, NOTE)
  writeFileSync(said, '')
  const sum = () =>
    readFileSync(said, 'utf8')
      .split('\n')
      .reduce((ns, each) => ns + Number(each), 0)
  return {
    env: { NODE_OPTIONS: `--require ${program}`, WAITED: said, SERVER: `${server}` },
    waited: () => sum() / 1e6,
  }
}

/** Times steps, and what those who have a part in them wait meanwhile. */
const timing = (waited: () => number) =>
  async function timed<T>(into: Times, step: () => Promise<T>): Promise<T> {
    const [begun, before] = [performance.now(), waited()]
    const done = await step()
    const took = performance.now() - begun
    into.all.push(took)
    into.own.push(Math.max(0, took - (waited() - before)))
    return done
  }

/** Somebody else at work: short calls, an agent's hook, a person's command. */
async function work(daemon: Served, repo: Repo, until_ms: number, found: Measured): Promise<void> {
  const token = await daemon.agentToken('bob')
  const headers = { 'content-type': 'application/json' }
  const { env, waited } = noting(repo, daemon.running.pid)
  const [timed, timedCall] = [timing(waited), timing(() => waitedFor(daemon.running.pid))]
  const call = async (name: string, input: object) => {
    const asked = { token, method: 'POST', headers, body: JSON.stringify(input) }
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const reply = await timedCall(found.calls, () => {
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
  a.env = { ...env, LEASEHOLD_TOKEN: token, LEASEHOLD_URL: daemon.url }
  for (let i = 0; performance.now() < until_ms && found.unguarded.length === 0; i += 1) {
    await calls(i)
    const hook = await timed(found.hooks, () => a.edit(`src/file-${i}.ts`))
    if (hook.code !== 0 || hook.err !== '') found.unguarded.push(hook.err)
    const words = ['task', 'add', `of a person ${i}`]
    const add = await timed(found.commands, () => place.cli(words, { env }))
    if (add.code !== 0) found.unguarded.push(add.err)
    await timed(found.bare, () => a.sh(`${process.execPath} -e 0`, '', env))
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
    ...{ calls: times(), hooks: times(), commands: times(), bare: times() },
    ...{ unguarded: [], met: {}, memory_mb: 0, revoked: times() },
  }
  await daemon.post('lock.acquire', { name: 'worst-0', agent: 'carol', ttl_seconds: 3600 })
  const args = [daemon.url, made.token]
  const worst: Running = place.start(args, { program: [process.execPath, WORST] })
  onTestFinished(() => worst.kill('SIGKILL'))
  await worst.said(/^begun$/m)
  const until_ms = performance.now() + SECONDS * 1000
  await Promise.all([work(daemon, repo, until_ms, found), watchMemory(daemon, until_ms, found)])
  if (found.unguarded.length > 0) return found
  // A daemon that does not answer in time is gone past, which is told.
  const { env: noted, waited } = noting(repo, daemon.running.pid)
  const { code, err } = await timing(waited)(found.revoked, () =>
    place.cli(['token', 'revoke', made.id, '--force'], { env: noted }),
  )
  if (code !== 0 || err !== '') found.unguarded.push(err)
  worst.child.stdin!.end()
  const { out } = await worst.ended
  found.met = JSON.parse(out.trimEnd().split('\n').at(-1)!) as Met
  return found
}

const at = (each: number[], share: number) =>
  each.toSorted((a, b) => a - b)[Math.min(each.length - 1, Math.floor(each.length * share))] ?? NaN

const shown = ({ all, own }: Times) => {
  const [gross, net] = [all, own].map((each) =>
    [0.5, 0.99, 1].map((share) => at(each, share).toFixed(0)).join(' / '),
  )
  return `${all.length} × ${net} ms (p50 / p99 / max), with waiting for a processor ${gross}`
}

function say({ calls, hooks, commands, bare, memory_mb, revoked, met }: Measured): void {
  const lines = [
    ...Object.entries({ calls, hooks, commands, bare, revoked }).map(
      ([what, each]) => `${what}: ${shown(each)}`,
    ),
    `memory at most ${memory_mb.toFixed(0)} MB; load ${loadavg()[0]!.toFixed(1)}`,
    JSON.stringify(met),
  ]
  process.stderr.write(`${lines.join('\n')}\n`)
}

/** What is broken of R49, in sentences. */
function faultsOf(found: Measured): string[] {
  const { calls, hooks, commands, memory_mb, revoked, unguarded, met } = found
  const budgets = new Set(Object.values(met).flatMap((ways) => Object.keys(ways)))
  const late = (what: string, each: Times) =>
    at(each.own, 0.99) > LATE_MS ? [`${what} come late: ${shown(each)}`] : []
  return [
    ...late('calls of others', calls),
    ...late('hooks of others', hooks),
    ...late('commands of others', commands),
    ...late('revocations', revoked),
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
