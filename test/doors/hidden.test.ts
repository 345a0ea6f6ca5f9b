import type { Worktree } from '../../src/core/schema/worktree.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bindToken } from '../../src/core/token.ts'
import { getTask } from '../../src/core/tasks/task.ts'
import { toolsIn } from '../../src/doors/mcp/tools.ts'
import { sha256, uniqueId } from '../../src/machine/digest.ts'
import { operations } from '../../src/operations/registry.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { ROUNDS, Sandbox, TEST_CLI, until } from '../support/processes.ts'
import { type McpAgent, overHttp } from './mcp_agent.ts'
import {
  besideAlice,
  conflicts,
  furnish,
  furnishSides,
  type Name,
  samplesOf,
  steady,
} from './scope_scene.ts'
import { finish, type Json, type Served, startDaemon } from './serving.ts'

/**
 * R48, "what may not be seen is not told, not even by number", as an experiment: all that a bound
 * token can ask is asked in a world without bob, and again when bob is there. Every answer has to
 * be the same, byte for byte. A new operation, tool or resource is asked too, by itself.
 */
const place = new Sandbox()
let daemon: Served
let store: Store
const tokens = new Map<string, string>()
const agents = new Map<string, McpAgent>()

const BOTH = 'a user and a project'
const OPEN = 'a user, with all projects open'
const BOUND = {
  'a user': { users: ['alice'] },
  'a project': { projects: ['alice-project'] },
  [BOTH]: { users: ['alice'], projects: ['alice-project'] },
  [OPEN]: { users: ['alice'], all_projects: true },
}
const RUN = 'a run'

beforeAll(async () => {
  // Budgets would only make it slow: they are not what is looked at.
  const program = [process.execPath, TEST_CLI]
  daemon = await startDaemon(place, { program, env: { LEASEHOLD_PLANT: 'R49' } })
  store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  await furnish(daemon, store, 'alice')
  await furnishSides(daemon, 'alice')
  await daemon.ok('queue.limit', { max: 8 })
  for (const [name, bounds] of Object.entries(BOUND)) {
    tokens.set(name, await daemon.agentToken('alice-eye', bounds))
  }
  const secret = `lh_${uniqueId()}`
  await store.write((view) => {
    bindToken(
      view,
      view.get('lease', 'task:alice-busy')!,
      getTask(view, 'alice-busy'),
      sha256(secret),
    )
  })
  tokens.set(RUN, secret)
  // Who asks is seen for the first time now: later it changes nothing.
  for (const token of tokens.values()) await daemon.ok('agent.heartbeat', {}, { token })
})

afterAll(async () => {
  await store.close()
  await finish(place)
  await place.close()
})

/** Questions about alice, about bob, and about nobody in particular. */
function inputsOf(name: Name): object[] {
  const inputs = ['alice', 'bob'].map((user) => samplesOf(user)[name])
  const searches = ['alice prompt', 'bob', 'one'].map((query) => ({ query }))
  const more: Partial<Record<Name, object[]>> = {
    'memory.search': [...searches, ...searches.map((each) => ({ ...each, mode: 'text' }))],
    'memory.context': searches,
    'lock.status': [{ name: 'user:alice' }, { name: 'user:bob' }, { name: 'project:bob-project' }],
    'task.explain': ['busy', 'waiting'].map((part) => ({ id: `alice-${part}` })),
    'event.list': [{ limit: 1000 }, { by: 'bob-agent' }, { type: 'landing' }],
    'task.list': [{ ready: true }, { status: 'todo' }],
  }
  return [{}, ...inputs, ...(more[name] ?? [])]
}

type Seen = Map<string, string>

async function askAll(token: string, agent: McpAgent): Promise<Seen> {
  const seen: Seen = new Map()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const reads = operations.filter(({ effect }) => effect === 'read')
  // One after the other: of a hundred connections most would lie idle until the server closes them,
  // and who is busy meanwhile takes one of these for open.
  for (const { name } of reads) {
    for (const input of inputsOf(name as Name)) {
      const sent = { method: 'POST', headers, body: JSON.stringify(input) }
      const reply = await fetch(`${daemon.url}/v1/${name}`, sent)
      expect(reply.status, `${name} ${sent.body}`).toBeLessThan(500)
      seen.set(`${name} ${sent.body}`, `${reply.status} ${steady(await reply.text())}`)
    }
  }
  const tools = toolsIn('all').filter(({ listed }) => listed.annotations['readOnlyHint'] === true)
  for (const { listed } of tools) {
    const operation = reads.find(({ tool }) => tool === listed.name)
    // The other names of one operation: a task's lock by the task's id.
    const inputs = operation
      ? inputsOf(operation.name as Name).slice(0, 3)
      : ['alice', 'bob'].map((user) => ({ task_id: `${user}-busy` }))
    for (const input of inputs) {
      const answer = await agent.call(listed.name, input as Json)
      seen.set(`tool ${listed.name} ${JSON.stringify(input)}`, steady(JSON.stringify(answer)))
    }
  }
  const uris = [
    'tasks/ready',
    ...['alice', 'bob'].flatMap((u) => [`task/${u}-task`, `task/${u}-busy`]),
  ]
  for (const uri of uris) {
    const answer = await agent.client
      .readResource({ uri: `leasehold://${uri}` })
      .catch((error: Error) => error.message)
    seen.set(`resource ${uri}`, steady(JSON.stringify(answer)))
  }
  return seen
}

/** The stream from its beginning until an event that says `last`. */
async function streamed(token: string, last: string): Promise<string> {
  const ended = new AbortController()
  const headers = { authorization: `Bearer ${token}` }
  const stream = await fetch(`${daemon.url}/v1/events?after=0-0`, { headers, signal: ended.signal })
  let heard = ''
  const reading = (async () => {
    for await (const chunk of stream.body!) heard += Buffer.from(chunk).toString()
  })().catch(() => undefined)
  await until(`${last} came`, () => heard.includes(last))
  ended.abort()
  await reading
  return heard
}

/** What was answered otherwise, and where. */
const changed = (before: Seen, after: Seen) =>
  [...before]
    .filter(([asked, answer]) => after.get(asked) !== answer)
    .map(([asked, answer]) => {
      const now = after.get(asked) ?? ''
      let at = 0
      while (answer[at] === now[at]) at += 1
      const part = (text: string) => text.slice(Math.max(0, at - 60), at + 100)
      return { asked, before: part(answer), after: part(now) }
    })

/** Who is bound to a project may know who else works there. */
const isOfAlice = (name: string) => name !== 'a project'

describe('a token that is bound', () => {
  test('is told the same whether there is anybody outside of its scope or not', async () => {
    // To whom all that is of projects is open, to that one bob's project is.
    for (const [name, token] of tokens) {
      if (name === OPEN) continue
      // What holds for a user and for a project holds for both: `npm run faults` asks it too.
      if (ROUNDS > 1 || name !== BOTH) agents.set(name, await overHttp(daemon.url, token))
    }
    const ask = async (isAsked = (_name: string) => true) => {
      const all = new Map<string, Seen>()
      for (const [name, agent] of agents) {
        if (isAsked(name)) all.set(name, await askAll(tokens.get(name)!, agent))
      }
      return all
    }
    const marked = async (id: string) => {
      const made = { id, title: id, user: 'alice', project: 'alice-project' }
      await daemon.ok('task.create', made)
    }
    await marked('alice-mark')
    conflicts.set('bob', 'no-such-conflict')
    const alone = await ask()
    const streams = new Map<string, string>()
    for (const [name, token] of tokens) streams.set(name, await streamed(token, 'alice-mark'))
    await furnish(daemon, store, 'bob')
    await furnishSides(daemon, 'bob')
    const made = conflicts.get('bob')!
    conflicts.set('bob', 'no-such-conflict')
    const beside = await ask()
    const of = (all: Map<string, Seen>, name: string) => all.get(name)!
    for (const name of agents.keys()) {
      expect(changed(of(alone, name), of(beside, name)), name).toEqual([])
    }
    await besideAlice(daemon)
    const within = await ask(isOfAlice)
    for (const name of [...agents.keys()].filter(isOfAlice)) {
      expect(changed(of(beside, name), of(within, name)), name).toEqual([])
      const heard = await streamed(tokens.get(name)!, 'alice-mark')
      expect(heard, name).toBe(streams.get(name))
    }
    conflicts.set('bob', made)
  })
})

const as = (token: string | undefined) => ({ token: token! })
const codeOf = async (name: string, input: object, token: string) => {
  const { status, json } = await daemon.post(name, input, { token })
  return status === 200 ? 'done' : (json.error.code as string)
}

/** A lock of this name is somebody else's, and so are a reservation and a wait. */
describe('what a token is not bound to', () => {
  test('is shut to it, unless it was said to be open', async () => {
    const ofUser = ['lock.acquire', { name: 'user:victim' }] as const
    const ofProject = ['lock.acquire', { name: 'git:elsewhere' }] as const
    const paths = ['reserve.add', { paths: ['x/**'], project: 'elsewhere' }] as const
    const noted = (scope: string) => ['memory.put', { key: 'k', content: 'v', scope }] as const
    const queued = { prompt: 'p', project: 'alice-project', user: 'victim' }
    const cases = [
      ['a user', ofProject, 'forbidden'],
      ['a user', paths, 'forbidden'],
      ['a user', noted('project:elsewhere'), 'forbidden'],
      ['a user', ['task.create', { title: 't', user: 'alice', project: 'elsewhere' }], 'forbidden'],
      ['a user', ['task.create', { title: 't', user: 'alice' }], 'done'],
      ['a project', ofUser, 'forbidden'],
      ['a project', noted('user:victim'), 'forbidden'],
      ['a project', ['queue.add', queued], 'forbidden'],
      ['a project', ['task.create', { title: 't', project: 'alice-project' }], 'done'],
      [OPEN, ofProject, 'done'],
      [OPEN, paths, 'done'],
      [OPEN, noted('project:elsewhere'), 'done'],
      [OPEN, ofUser, 'forbidden'],
    ] as const
    for (const [whose, [name, input], expected] of cases) {
      const code = await codeOf(name, input, tokens.get(whose)!)
      expect({ whose, name, input, code }).toEqual({ whose, name, input, code: expected })
    }
    const { items } = await daemon.ok('memory.list', {}, as(tokens.get('a project')))
    expect(JSON.stringify(items)).not.toContain('user:alice')
  })

  test('cannot be both: some, and all', async () => {
    const asked = { secret_hash: sha256('both'), role: 'viewer', users: ['a'], all_users: true }
    expect(await codeOf('token.create', asked, daemon.secret)).toBe('invalid')
  })
})

describe('a landing', () => {
  const worktreeOn = (branch: string): Worktree => {
    const whose = { id: 'other.1', task_id: 'other', run_id: 'other.1', fence: 1, project: 'x' }
    const stood = { host: 'h', repository: '/r/.git', path: '/w', branch, base: 'c', changed: [] }
    const stands = { state: 'left', salvage: null, kept_because: null } as const
    return { ...whose, ...stood, ...stands, begun_at: '', left_at: '' }
  }

  test('takes and moves branches of its own task only', async () => {
    const project = 'alice-project'
    await store.write((view) => {
      view.put('landing_rule', { project, onto: 'main', auto: false, checks: true })
      view.put('worktree', worktreeOn('bobs-branch'))
    })
    const token = await daemon.agentToken('l', { users: ['carol'], projects: [project] })
    const made = { id: 'to-land', title: 't', user: 'carol', project }
    await daemon.ok('task.create', made)
    await daemon.ok('task.claim', { id: 'to-land', agent: 'l' })
    await daemon.ok('task.status', { id: 'to-land', status: 'review', agent: 'l' })
    const land = (more: object) => codeOf('land.add', { id: 'to-land', ...more }, token)
    expect(await land({ branch: 'bobs-branch' })).toBe('forbidden')
    expect(await land({ onto: 'nobodys-branch' })).toBe('forbidden')
    expect(await land({ onto: 'bobs-branch' })).toBe('forbidden')
    expect(await land({ onto: 'main' })).toBe('done')
  })

  test('without a task belongs to who asked for it', async () => {
    const [ada, eve] = [await daemon.agentToken('ada'), await daemon.agentToken('eve')]
    const id = 'alice-branch-landing'
    expect(await codeOf('land.cancel', { id }, eve)).toBe('forbidden')
    expect(await codeOf('land.get', { id }, tokens.get('a project')!)).toBe('not_found')
    expect(await codeOf('land.cancel', { id }, tokens.get('a project')!)).toBe('not_found')
    expect(await codeOf('land.cancel', { id }, ada)).toBe('done')
  })
})

describe('a stranger', () => {
  const named = (said: unknown) => JSON.stringify(said).includes('stranger')

  test('is named neither by a warning nor by an event that one caused oneself', async () => {
    const token = await daemon.agentToken('noticing', { users: ['alice'] })
    const [checkout, paths] = ['/shared/checkout', ['a.ts']]
    const mine = { paths, checkout, reason: 'stranger why' }
    await daemon.ok('reserve.add', { ...mine, agent: 'stranger', process: null })
    const where = { paths, checkout, process: null }
    const touched = await daemon.ok('reserve.touch', { ...where, mode: 'warn' }, as(token))
    expect(touched.warnings).toHaveLength(1)
    expect(named(touched)).toBe(false)
    const asks = { ...where, paths: ['mine.ts'], agent: 'stranger' }
    await daemon.ok('reserve.add', { checkout, paths: ['mine.ts'], process: null }, as(token))
    await daemon.ok('reserve.ask', { ...asks, reason: 'I need it' })
    const renewing = { ...where, paths: [], mode: 'auto', hears: true }
    const heardOf = await daemon.ok('reserve.touch', renewing, as(token))
    expect(heardOf.words).toEqual([expect.stringContaining('asks for mine.ts')])
    expect(named(heardOf)).toBe(false)
    const noticed = await daemon.ok('hook.notice', where, as(token))
    expect(named(noticed)).toBe(false)
    const { items } = await daemon.ok('event.list', { type: 'hook.noticed' }, as(token))
    expect(items).toMatchObject([{ agent: 'noticing', data: { holder: 'another agent' } }])
    const heard = await streamed(token, 'event: hook.noticed')
    await until('all of it', async () => (await streamed(token, 'another agent')).length > 0)
    expect(named(heard)).toBe(false)
  })

  test('is not named where one waits in a circle with it', async () => {
    const token = await daemon.agentToken('circling', { users: ['alice'] })
    await daemon.ok('lock.acquire', { name: 'one' }, as(token))
    await daemon.ok('lock.acquire', { name: 'two', agent: 'stranger' })
    const waits = daemon.post('lock.acquire', { name: 'one', agent: 'stranger', wait_seconds: 20 })
    await until('it waits', async () => {
      return (await daemon.ok('lock.status', { name: 'one' })).waiters.length === 1
    })
    const asked = await daemon.post('lock.acquire', { name: 'two', wait_seconds: 20 }, as(token))
    expect(asked.json.error.code).toBe('deadlock')
    expect(named(asked.json)).toBe(false)
    const { items } = await daemon.ok('event.list', { limit: 1000 }, as(token))
    expect(items.map(({ type }: { type: string }) => type)).toContain('deadlock.found')
    expect(named(items)).toBe(false)
    await daemon.ok('lock.release', { name: 'one' }, as(token))
    expect((await waits).status).toBe(200)
  })
})

describe('a hidden task', () => {
  test('is not told of by what is written under it, nor by what waits for it', async () => {
    const token = tokens.get(BOTH)!
    for (const id of ['hidden', 'hidden-held']) {
      await daemon.ok('task.create', { id, title: id, user: 'bob', project: 'bob-project' })
    }
    await daemon.ok('task.claim', { id: 'hidden-held', agent: 'bob-agent' })
    const note = { key: 'of', content: 'x', scope: 'project:alice-project' }
    for (const task_id of ['hidden', 'hidden-held', 'no-such-task']) {
      expect(await codeOf('memory.put', { ...note, task_id }, token)).toBe('not_found')
    }
    const own = { user: 'alice', project: 'alice-project' }
    await daemon.ok('task.create', { id: 'behind', title: 'b', ...own, depends_on: ['hidden'] })
    const got = await daemon.ok('task.get', { id: 'behind' }, as(token))
    const asked = { id: 'behind', version: got.version, title: 'c' }
    const edited = await daemon.ok('task.update', asked, as(token))
    expect([got.depends_on, edited.depends_on]).toEqual([[], []])
    const claim = await daemon.post('task.claim', { id: 'behind' }, as(token))
    expect(claim.json.error.code).toBe('illegal_move')
    expect(claim.text).not.toContain('hidden')
    const why = await daemon.ok('task.explain', { id: 'behind' }, as(token))
    expect(why.sentence).toMatch(/^Task behind waits for a task of others; /)
    expect(JSON.stringify(why)).not.toContain('hidden')
  })
})
