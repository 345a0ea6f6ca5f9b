import { afterAll, describe, expect, test } from 'vitest'
import { bindToken } from '../../src/core/token.ts'
import { getTask } from '../../src/core/tasks/task.ts'
import { toolsIn } from '../../src/doors/mcp/tools.ts'
import { sha256, uniqueId } from '../../src/machine/digest.ts'
import { operations } from '../../src/operations/registry.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { ROUNDS, Sandbox, TEST_CLI } from '../support/processes.ts'
import { overHttp } from './mcp_agent.ts'
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
 * R48 for writes, as hidden.test has it for reads: the same asks of a bound token, one after the
 * other, on servers that differ in whether there is somebody else. Rules decide on all rows, so an
 * answer or a refusal could tell; each has to be the same. A new operation or tool is asked too.
 */
const BOUND = {
  'a user': { users: ['alice'] },
  'a user and a project': { users: ['alice'], projects: ['alice-project'] },
  'a project': { projects: ['alice-project'] },
}
const RUN = 'a run'
const STRANGE = 'of-a-stranger'
const SHARED = { checkout: '/shared', process: null }

interface World {
  daemon: Served
  tokens: Map<string, string>
  conflict: string
}

/** A thousand asks on a machine that does other things too. */
const PATIENT = { timeout: 240_000 }

const places: Sandbox[] = []
afterAll(async () => {
  for (const place of places) {
    await finish(place)
    await place.close()
  }
})

async function worldWith(whom: 'nobody' | 'bob elsewhere' | 'bob beside alice'): Promise<World> {
  const place = new Sandbox()
  places.push(place)
  // Budgets would only make it slow: they are not what is looked at.
  const program = [process.execPath, TEST_CLI]
  const daemon = await startDaemon(place, { program, env: { LEASEHOLD_PLANT: 'R49' } })
  const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  await furnish(daemon, store, 'alice')
  await furnishSides(daemon, 'alice')
  const conflict = conflicts.get('alice')!
  if (whom !== 'nobody') {
    await furnish(daemon, store, 'bob')
    await furnishSides(daemon, 'bob')
  }
  if (whom === 'bob beside alice') await besideAlice(daemon)
  // Somebody is in the way in each of them, and it must not be told who.
  const agent = whom === 'nobody' ? 'zoe' : 'bob-agent'
  const held = { agent, ttl_seconds: 3600 }
  await daemon.ok('lock.acquire', { name: STRANGE, ...held })
  await daemon.ok('reserve.add', {
    paths: ['strange/**'],
    ...SHARED,
    ...held,
    reason: `${agent} why`,
  })
  const tokens = new Map<string, string>()
  for (const [name, bounds] of Object.entries(BOUND)) {
    tokens.set(name, await daemon.agentToken('alice-eye', bounds))
  }
  const secret = `lh_${uniqueId()}`
  await store.write((view) => {
    const lease = view.get('lease', 'task:alice-busy')!
    bindToken(view, lease, getTask(view, 'alice-busy'), sha256(secret))
  })
  await store.close()
  tokens.set(RUN, secret)
  return { daemon, tokens, conflict }
}

const writes = operations.filter(({ effect }) => effect === 'write')

/** Of an operation: about alice, about what nobody has, and with what is free for all. */
function inputsOf(name: Name): Json[] {
  const own = { user: 'alice', project: 'alice-project' }
  const more: Partial<Record<Name, object[]>> = {
    'lock.acquire': [
      { name: 'free' },
      { names: ['free-2', 'git:alice-project'] },
      { name: STRANGE },
      { names: ['free-3', STRANGE], takeover: true },
    ],
    'lock.release': [{ name: 'free' }, { name: STRANGE }],
    'lock.renew': [{ name: STRANGE }],
    'lock.hand_off': [{ name: STRANGE, to: 'alice-eye' }],
    'task.create': [
      { title: 'after', ...own, depends_on: ['alice-task'] },
      { title: 'after what is hidden', ...own, depends_on: ['bob-task'] },
      { id: 'bob-task', title: 'an id that may be taken', ...own },
      { title: 'touching', ...own, touches: ['alice/**'] },
    ],
    'task.claim': [{}, { queued: true }, { project: 'alice-project', max: 3 }],
    'queue.add': [
      { prompt: 'p', ...own, priority: 9 },
      { prompt: 'p', ...own, group: 'g' },
      { id: 'bob-waiting', prompt: 'an id that may be taken', ...own },
    ],
    'reserve.add': [
      { paths: ['alice/x', 'y'], project: 'alice-project' },
      { paths: ['strange/x'], ...SHARED },
    ],
    'reserve.touch': [
      { paths: ['bob/x'], project: 'alice-project', mode: 'warn' },
      { paths: ['strange/x'], ...SHARED, mode: 'warn' },
      { paths: ['strange/x'], ...SHARED, mode: 'auto' },
    ],
    'hook.restore': [{ paths: ['strange/x'], ...SHARED }],
    'memory.put': [{ key: 'alice prompt', content: 'c', scope: 'user:alice' }],
    'agent.heartbeat': [{ agent: 'alice-eye/sub' }],
  }
  return [samplesOf('alice')[name], samplesOf('nobody')[name], ...(more[name] ?? [])]
}

/** Ids are made anew, and fences, numbers of tasks and of events come from one counter for all. */
const plain = (text: string, { conflict }: World) =>
  steady(text)
    .replaceAll(conflict, 'CONFLICT')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d\d:\d\d:\d\d\b/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|\b[0-9a-f]{8}\b/g, 'ID')
    .replaceAll(/(\\?"(?:last_fence|fence|pid|port)\\?":) ?\d+/g, '$1 N')
    .replaceAll(/#\d+|\b(?:fence|the lease) \d+/g, '#N')
    .replaceAll(/(\\?"(?:id|task|task_id|run_id|lock|name|lock_id)\\?":\\?"(?:task:)?)\d+/g, '$1N')
    .replaceAll(/\b([Tt]ask|Enqueued|Created|task:)( ?)\d+/g, '$1$2N')
    .replaceAll(/\b\d+(\.\d+)\b/g, 'N$1')

/** A tool says what its operation says, in more words: one of them asks, unless there is time. */
const isByTool = (kind: string) => ROUNDS > 1 || kind === 'a user'

async function askAll(world: World, kind: string): Promise<Map<string, string>> {
  conflicts.set('alice', world.conflict)
  const seen = new Map<string, string>()
  const token = world.tokens.get(kind)!
  const keep = (what: string, said: string) => seen.set(what, plain(said, world))
  for (const { name } of writes) {
    for (const [i, input] of inputsOf(name as Name).entries()) {
      const { status, text } = await world.daemon.post(name, input, { token })
      keep(`${name} ${i}`, `${status} ${text}`)
    }
  }
  if (!isByTool(kind)) return seen
  const agent = await overHttp(world.daemon.url, token)
  for (const { listed } of toolsIn('all')) {
    if (listed.annotations['readOnlyHint'] === true) continue
    const operation = writes.find(({ tool }) => tool === listed.name)
    // The other names of one operation: a task's lock by the task's id.
    const inputs = operation ? inputsOf(operation.name as Name) : [{ task_id: 'alice-task' }]
    for (const [i, input] of inputs.entries()) {
      keep(`tool ${listed.name} ${i}`, JSON.stringify(await agent.call(listed.name, input)))
    }
  }
  return seen
}

const differing = (a: Map<string, string>, b: Map<string, string>) =>
  [...a].flatMap(([asked, said]) => {
    const other = b.get(asked) ?? ''
    let at = 0
    while (said[at] === other[at] && at < said.length) at += 1
    const part = (text: string) => text.slice(Math.max(0, at - 120), at + 160)
    return said === other ? [] : [{ asked, alone: part(said), beside: part(other) }]
  })

describe('what a bound token is answered when it writes', PATIENT, () => {
  test.each(['bob elsewhere', 'bob beside alice'] as const)(
    'is the same with %s',
    PATIENT,
    async (whom) => {
      const found: { kind: string; differing: object[] }[] = []
      const [alone, beside] = [await worldWith('nobody'), await worldWith(whom)]
      for (const kind of alone.tokens.keys()) {
        // Who is bound to a project may know who else works there.
        if (kind === 'a project' && whom === 'bob beside alice') continue
        const [before, after] = [await askAll(alone, kind), await askAll(beside, kind)]
        expect(
          [...before.values()].filter((said) => said.startsWith('200')).length,
        ).toBeGreaterThan(5)
        found.push({ kind, differing: differing(before, after) })
      }
      expect(found.filter((each) => each.differing.length > 0)).toEqual([])
    },
  )
})
