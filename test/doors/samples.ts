import { randomUUID } from 'node:crypto'
import type { Registered } from '../../src/operations/registry.ts'
import type { ProcessRef } from '../../src/core/rows.ts'
import { sha256 } from '../../src/stores/digest.ts'
import type { Served } from './serving.ts'

type Name = Registered['name']

/** What the samples speak of: things that `prepare` has put into the store. */
interface Scene {
  /** A lock that ada holds for an hour. */
  held: { name: string; fence: number }
  task: string
  token: string
  group: ProcessRef
}

/** Puts in what the samples need, with ada as the holder. */
export async function prepare(daemon: Served, group: ProcessRef): Promise<Scene> {
  const mark = randomUUID().slice(0, 8)
  const name = `held-${mark}`
  const ask = { names: [name], agent: 'ada', ttl_seconds: 3600 }
  const { fence } = await daemon.ok('lock.acquire', ask)
  const { id: task } = await daemon.ok('task.create', { id: `task-${mark}`, title: 'To do' })
  const secret_hash = sha256(mark)
  const { id: token } = await daemon.ok('token.create', { secret_hash, role: 'viewer' })
  return { held: { name, fence }, task, token, group }
}

/**
 * For every operation an input that ada may ask with success: what then refuses it is what the test
 * is about. The type asks for a sample as soon as an operation is added.
 */
export function samplesFor({ held, task, token, group }: Scene): Map<Name, object> {
  const { name } = held
  const samples = {
    'lock.acquire': { names: [`fresh-${name}`], ttl_seconds: 60 },
    'lock.renew': held,
    'lock.status': { name },
    'lock.list': { limit: 5 },
    'lock.explain': { name },
    'lock.name_group': { ...held, group },
    'lock.force_release': { name },
    'lock.release': held,
    'lock.hand_off': { ...held, to: 'bob' },
    'task.create': { title: 'New' },
    'task.get': { id: task },
    'task.list': { ready: true },
    'task.claim': { id: task },
    'task.status': { id: task, status: 'in_progress' },
    'task.update': { id: task, version: 1, title: 'Changed' },
    'task.explain': { id: task },
    'agent.list': { limit: 5 },
    'agent.heartbeat': {},
    'token.create': { secret_hash: sha256(`another-${name}`), role: 'viewer' },
    'token.list': {},
    'token.revoke': { id: token },
  } satisfies Record<Name, object>
  return new Map(Object.entries(samples)) as Map<Name, object>
}
