import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { ownProcess, processRef } from '../../src/machine/process.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { dispatching, type Dispatching, script } from '../support/dispatching.ts'
import { type Json, send } from '../doors/serving.ts'
import { daemonOn } from '../support/daemons.ts'
import { LEASEHOLD, repository } from '../hooks/agents.ts'
import { BIN, isAlive, TEST_CLI, until } from '../support/processes.ts'

const AGENT = fileURLToPath(new URL('hostile_agent.mjs', import.meta.url))
/** Stands in all that bob wrote: nobody else may ever read it. */
const SECRET = 'bob-secret'

/** A server with a dispatcher, whose configuration a person has approved. */
async function served(env: Record<string, string>, program: string) {
  const all = dispatching({
    agents: {
      mallory: { command: [process.execPath, AGENT] },
      bob: script(`echo ${SECRET}; begin; forever`),
    },
    projects: { 'mallory-project': { agent: 'mallory' }, 'bob-project': { agent: 'bob' } },
  })
  all.place.env['LEASEHOLD_TRUST_CONFIG'] = undefined
  await all.place.ok(['config', 'approve', '--yes'])
  await all.serve(env, program)
  const store = openStore(placeOf({ LEASEHOLD_DIR: all.place.state }, all.place.folder))
  onTestFinished(() => store.close())
  return { all, store }
}

/** All that bob has: a run, tasks, a lock, files, notes that disagree. */
async function furnish({ daemon }: Dispatching, store: Store): Promise<Json> {
  const [project, agent] = ['bob-project', 'bob-agent']
  const scope = `project:${project}`
  const add = { user: 'bob', project, prompt: SECRET, title: SECRET, agent: 'bob-owner' }
  for (const part of ['busy', 'waiting', 'cancelled']) {
    await daemon.ok('queue.add', { ...add, id: `bob-${part}` })
  }
  await daemon.ok('queue.cancel', { id: 'bob-cancelled' })
  await daemon.ok('task.create', { id: 'bob-task', title: SECRET, project, user: 'bob' })
  const lock = `git:${project}`
  const { fence } = await daemon.ok('lock.acquire', { name: lock, agent, ttl_seconds: 3600 })
  await daemon.ok('reserve.add', { paths: ['bob/**'], project, agent, reason: SECRET })
  await daemon.ok('memory.put', { key: 'bob-note', content: `${SECRET} 1`, scope, agent })
  const second = { key: 'bob-note', content: `${SECRET} 2`, scope, agent: `${agent}-2` }
  const { conflict } = await daemon.ok('memory.put', second)
  await daemon.ok('memory.put', { key: 'bob-other', content: `${SECRET} 3`, scope, agent })
  await store.write((view) => {
    const ids = { a: `${scope}\nbob-note`, b: `${scope}\nbob-other` }
    const open = { similarity: 0.9, label: null, status: 'open' as const, action: null }
    const ends = { resolved_by: null, resolved_at: null, found_at: view.at }
    view.put('duplicate', { id: 'bob-pair', ...ids, ...open, ...ends })
  })
  const secret_hash = createHash('sha256').update('bob').digest('hex')
  const made = await daemon.ok('token.create', { secret_hash, role: 'agent', for_agent: agent })
  const { items } = await daemon.ok('lock.list')
  const { name, fence: daemon_fence } = items.find((each: Json) => each.name === 'leasehold:daemon')
  const run = await until('bob’s run has begun', async () => {
    const found = await daemon.post('run.get', { id: 'bob-busy.1' })
    return found.json.begun_at && found.json
  })
  return {
    lock,
    fence,
    conflict: conflict.id,
    token: made.id,
    agent: run.agent,
    run: run.id,
    run_fence: run.fence,
    pid: run.pid,
    server: { name, fence: daemon_fence },
  }
}

/** Leases that a holder renews go on; who holds what, and under which fence, does not change. */
const standing = ({ name, holder, fence, ended_at }: Json) => ({ name, holder, fence, ended_at })

/** What a run of mallory's own moves, its clock and how long runs take, is left out. */
const settingsOf = ({ vclock: _, run_ms: __, ...queue }: Json) => queue

/** All rows that are not mallory’s, as they are kept. */
function rowsOf(store: Store): Promise<string> {
  const isOthers = ({ user }: { user: string | null }) => user !== 'mallory'
  return store.read((view) => {
    const leases = [...view.scan('leases_by_expiry', '')].filter(
      ({ holder }) => !holder.includes('mallory'),
    )
    const rows = [
      [...view.scan('tasks', '')].filter(isOthers),
      leases.map(standing).toSorted((a, b) => a.fence - b.fence),
      [...view.scan('memories', '')],
      [...view.scan('conflicts', 'open')],
      view.get('duplicate', 'bob-pair'),
      view.get('run', 'bob-busy.1'),
      settingsOf(view.get('queue', 'queue')),
      [...view.scan('limits', '')].filter(({ key }) => !/mallory|^pool$/.test(key)),
      [...view.scan('tokens', '')].filter(({ agent }) => !agent?.includes('mallory')),
      [...view.scan('tickets', '')],
    ]
    return JSON.stringify(rows, null, 1)
  })
}

/**
 * Every file of the state folder by content, but the store’s own, what mallory’s run leaves, and
 * what hooks note of calls that are under way and of what they told whom.
 */
function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()
  const isOurs = (name: string) =>
    !/^(?:witness\.)?leasehold\.db|mallory|^guard\/.*\.call$|^seen\//.test(name)
  const files = names.filter((name) => isOurs(name) && statSync(join(folder, name)).isFile())
  return Object.fromEntries(
    files.map((name) => {
      const text = readFileSync(join(folder, name))
      return [name, createHash('sha256').update(text).digest('hex')]
    }),
  )
}

/** How often doors have refused, as /metrics says. */
async function refusals({ daemon }: Dispatching): Promise<number> {
  const { text } = await send(daemon.url, '/metrics', { token: daemon.secret })
  const counts = text.matchAll(/^leasehold_doors_refusals_total\{.*\} (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** What nothing can be called, so that asking for it is refused as it stands. */
const NO_NAME = /path|by GET/

interface Result {
  what: string
  refused: boolean
  said: string
}

/** Lets mallory try everything against bob; tells how things stood before, and what came of it. */
async function attacked(env: Record<string, string> = {}, program = BIN, count?: number) {
  const { all, store } = await served(env, program)
  const { place, daemon } = all
  const bob = await furnish(all, store)
  const sleeper = place.start([], { program: ['setsid', 'sleep', '600'] })
  onTestFinished(() => sleeper.kill('SIGKILL'))
  const spared = [daemon.running.pid, sleeper.pid, bob.pid as number]
  const named = [...spared, 1, 0, -1]
  const starts = Object.fromEntries(named.map((pid) => [pid, pid > 0 ? processRef(pid)?.start : 0]))
  const prompt = { bob, bin: BIN, count, pids: { named, starts, like: ownProcess() } }
  const rows = await rowsOf(store)
  const files = filesOf(place.state)
  const counted = await refusals(all)
  const mallory = { user: 'mallory', project: 'mallory-project', id: 'mallory-1' }
  await daemon.ok('queue.add', { ...mallory, prompt: JSON.stringify(prompt) })
  const said = await until('mallory has tried everything', () => all.read('results'))
  const { tries, looks } = JSON.parse(said) as { tries: Result[]; looks: Result[] }
  return { all, store, before: { rows, files, counted }, spared, tries, looks }
}

describe('an agent with the token of its run', () => {
  test('gets nothing of another user, changes nothing, and leaves a trace', async () => {
    const { all, store, before, spared, tries, looks } = await attacked()
    const { place, daemon } = all
    expect(tries.filter(({ refused }) => !refused)).toEqual([])
    // For what it is, not for how it was asked.
    const isAwry = ({ what, said }: Result) => said.includes('"invalid"') && !NO_NAME.test(what)
    expect(tries.filter(isAwry)).toEqual([])
    expect(tries.filter(({ said }) => said.includes(SECRET))).toEqual([])
    const isTold = ({ said }: Result) => /bob-(?:secret|agent|owner)/.test(said)
    expect(looks.filter(isTold)).toEqual([])
    expect(tries.length + looks.length).toBeGreaterThanOrEqual(100)
    // Nothing has changed.
    expect(await rowsOf(store)).toBe(before.rows)
    expect(filesOf(place.state)).toEqual(before.files)
    // It is on record: counted, and who tried what is in the log.
    const isSent = ({ what }: Result) => !/^command|^resource/.test(what)
    const sent = tries.filter(isSent).length
    expect((await refusals(all)) - before.counted).toBeGreaterThanOrEqual(sent)
    expect(daemon.running.err).toMatch(
      /refused \/v1\/lock\.force_release to mallory:mallory-1\.1: /,
    )
    // Nor does anything change when its run ends.
    await daemon.ok('queue.cancel', { id: 'mallory-1' })
    await all.become('mallory-1', 'cancelled')
    expect(await rowsOf(store)).toBe(before.rows)
    expect(spared.filter((pid) => !isAlive(pid))).toEqual([])
  })

  test('planted: without the check of what a write touches, it gets at bob’s', async () => {
    const { store, before, tries } = await attacked({ LEASEHOLD_PLANT: 'R48' }, TEST_CLI, 20)
    expect(tries.filter(({ refused }) => !refused).length).toBeGreaterThan(5)
    expect(await rowsOf(store)).not.toBe(before.rows)
  })
})

const WRITES = ['Write', 'Edit', 'MultiEdit']

/** An edit by a tool of Claude Code, and the command that does what the tool would do. */
const edit = (file_path: string, tool = 'Write') => ({
  tool_name: tool,
  tool_input: { file_path, content: 'EVIL', edits: [] },
  effect: `printf EVIL > '${file_path.trim().replace(/^~/, '$HOME')}'`,
})

const bash = (command: string) => ({
  tool_name: 'Bash',
  tool_input: { command },
  effect: command,
})

test('an agent that only edits files gets at no state folder and past no reservation', async () => {
  const { place, repo, a, b, git } = repository()
  const witness = place.path('witness')
  place.env['LEASEHOLD_TRUST_CONFIG'] = undefined
  const other = place.path('other/.leasehold')
  const approved = join(place.home, '.local/state/leasehold/approved')
  for (const folder of [other, approved]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const config = join(place.state, 'config.json')
  for (const file of [config, join(other, 'config.json'), join(approved, 'x.json')]) {
    writeFileSync(file, '{}\n', { mode: 0o600 })
  }
  git('worktree', 'add', '-q', place.path('tree'))
  symlinkSync(place.state, join(repo, 'alias'))
  symlinkSync(join(place.state, 'not-yet.json'), join(repo, 'later'))
  linkSync(config, join(repo, 'twin'))
  linkSync(join(repo, 'a.ts'), join(repo, 'src/twin.ts'))
  const daemon = await daemonOn(place)
  // Another agent is at work on a.ts, and has src/ to itself.
  await b.edit('a.ts')
  await b.leasehold("reserve add 'src/**'")
  const evil = JSON.stringify({ alerts: { command: ['/usr/bin/touch', witness] } })
  const quoted = `'${evil}'`
  const state = place.state
  const tries = [
    ...WRITES.map((tool) => edit(config, tool)),
    edit(` ${config} `),
    edit(join(repo, '../state/config.json')),
    edit('../state/server.json'),
    edit(join(state, 'admin.token')),
    edit(join(state, 'sessions/1-1.json')),
    edit(join(repo, 'alias/config.json')),
    edit(join(repo, 'later')),
    edit(join(repo, 'twin')),
    edit(join(other, 'config.json')),
    edit(join(approved, 'x.json')),
    edit('~/.local/state/leasehold/approved/new.json'),
    edit('~/.leasehold/config.json'),
    bash(`echo ${quoted} > ${config}`),
    bash(`cd ../state && tee config.json <<< ${quoted}`),
    bash(`ln -s ${state} x && echo ${quoted} > x/config.json`),
    bash(`ln ${config} y && echo ${quoted} > y`),
    bash(`cp b.ts ${state}/config.json`),
    bash(`mv ${config} ./mine`),
    bash(`rm -rf ${state}`),
    bash(`sed -i 's/{/[/' ${state}/conf*.json`),
    bash(`bash -c "echo x > ${other}/config.json"`),
    edit(join(repo, 'a.ts')),
    edit('a.ts'),
    edit(join(repo, 'src/../a.ts')),
    edit(join(repo, 'src/twin.ts')),
    edit(join(repo, 'src/new.ts')),
    bash('cat > a.ts <<EOF\nEVIL\nEOF'),
    bash('cd src && rm c.ts'),
    bash('mv a.ts z.ts'),
    bash(`${LEASEHOLD} --agent ${b.id} reserve release`),
    bash(`${LEASEHOLD} --force lock force-release x`),
    bash(`${LEASEHOLD} config approve --yes`),
  ]
  const files = () => [state, other, approved, join(repo, 'src')].map(filesOf)
  const reserved = () => place.ok(['reserve', 'list'])
  await a.edit('b.ts')
  const before = {
    files: files(),
    a: readFileSync(join(repo, 'a.ts'), 'utf8'),
    held: await holders(),
  }
  async function holders() {
    const { items } = await reserved()
    return items.map(({ path, holder, fence }: Json) => [path, holder, fence])
  }
  const past: unknown[] = []
  for (const { tool_name, tool_input, effect } of tries) {
    const input = { session_id: a.session, cwd: repo, tool_name, tool_input }
    // The edit is made as soon as the hook has nothing against it.
    const { code, err } = await a.sh(
      `${LEASEHOLD} hook claude pre-tool-use && { ${effect}\n}`,
      JSON.stringify(input),
    )
    if (code === 0) past.push({ tool_input, err })
  }
  expect(past).toEqual([])
  expect(files()).toEqual(before.files)
  expect(readFileSync(join(repo, 'a.ts'), 'utf8')).toBe(before.a)
  expect(await holders()).toEqual(before.held)
  // Written all the same, by a program of its own: what it names is not started.
  await a.sh(`echo ${quoted} > ${config}`)
  await daemon.running.said(/nobody has approved: alerts\.command/)
  expect(existsSync(witness)).toBe(false)
})
