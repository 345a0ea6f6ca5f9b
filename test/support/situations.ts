import { join } from 'node:path'
import type { Code } from '../../src/core/reasons/reasons.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import type { Json } from '../doors/serving.ts'
import { type Dispatching, HELD, script } from './dispatching.ts'
import { until } from './processes.ts'

/** One way in which nothing happens: how it comes about, what is said of it, and what ends it. */
interface Situation {
  kind: Code
  says: RegExp
  /** The task of which `explain` says the same. */
  task?: string
  /** Brings it about, and returns what ends it. */
  stage: (all: Dispatching) => Promise<() => Promise<unknown>>
}

const AGENTS = { held: script(HELD), missing: { command: ['/nowhere/to/be/found'] } }

/** What a dispatcher is told before the first situation. */
export const STAGE = {
  agents: AGENTS,
  projects: {
    web: { agent: 'held' },
    infra: { agent: 'held', limit: 1 },
    api: { agent: 'missing' },
  },
  busy_timeout_ms: 100,
}

/** In this order: each leaves things as the next one needs them. */
export const SITUATIONS = {
  paused: {
    kind: 'paused',
    says: /^1 task waits because the whole queue is paused$/,
    task: 'ada-1',
    stage: async (all) => {
      await all.daemon.ok('queue.pause')
      await all.add('ada-1', 'ada')
      return async () => {
        await all.daemon.ok('queue.resume')
        await all.seen('start', 1)
      }
    },
  },
  'user busy': {
    kind: 'user_busy',
    says: /^1 task waits because user ada is busy with task ada-1$/,
    task: 'ada-2',
    stage: async (all) => {
      await all.add('ada-2', 'ada')
      return () => all.daemon.ok('queue.cancel', { id: 'ada-2' })
    },
  },
  'limit full': {
    kind: 'limit_full',
    says: /^1 task waits because project infra is at its limit: 1 of 1 running$/,
    task: 'cem-1',
    stage: async (all) => {
      await all.add('ben-1', 'ben', { project: 'infra' })
      await all.seen('start', 2)
      await all.add('cem-1', 'cem', { project: 'infra' })
      return () => all.daemon.ok('queue.cancel', { id: 'cem-1' })
    },
  },
  'project unserved': {
    kind: 'unserved',
    says: /^1 task waits because no dispatcher serves project elsewhere$/,
    task: 'dan-1',
    stage: async (all) => {
      await all.add('dan-1', 'dan', { project: 'elsewhere' })
      return () => all.daemon.ok('queue.cancel', { id: 'dan-1' })
    },
  },
  'dead holder within its TTL': {
    kind: 'holder_silent',
    says: /^docs-writer holds db and git:web, and was not heard of for \d+ s; 2 agents wait, the/,
    stage: async ({ daemon }) => {
      const hold = (name: string, ttl_seconds: number) =>
        daemon.ok('lock.acquire', { names: [name], agent: 'docs-writer', ttl_seconds })
      await hold('git:web', 12)
      await hold('db', 600)
      const waits = (name: string) =>
        daemon.post('lock.acquire', { names: [name], agent: `for ${name}`, wait_seconds: 60 })
      // The first in line waits for a lease of which only a small part is over.
      const first = waits('db')
      await until('one waits', async () => (await daemon.ok('lock.waiters')).items.length > 0)
      const waiting = [first, waits('git:web')]
      const free = (name: string) => daemon.ok('lock.force_release', { name })
      return () => Promise.all([free('db'), free('git:web'), ...waiting])
    },
  },
  'deadlock victim': {
    kind: 'deadlock',
    says: /^bob was let go, to break a deadlock$/,
    stage: async ({ daemon }) => {
      const take = (agent: string, name: string, more: object) =>
        daemon.post('lock.acquire', { names: [name], agent, ...more })
      await take('ann', 'x', { ttl_seconds: 600 })
      await take('bob', 'y', { ttl_seconds: 600 })
      const wait = take('ann', 'y', { wait_seconds: 60 })
      await until('ann waits', async () => (await daemon.ok('lock.waiters')).items.length > 0)
      await take('bob', 'x', { wait_seconds: 9 })
      return async () => {
        await daemon.ok('lock.force_release', { name: 'y' })
        await wait
      }
    },
  },
  'store read-only': {
    kind: 'store_trouble',
    says: /^The store cannot be used as it should: /,
    stage: async (all) => {
      const db = openDatabase(join(all.place.state, 'leasehold.db'), { readOnly: false })
      db.exec('PRAGMA busy_timeout = 5000')
      db.exec('BEGIN IMMEDIATE')
      await all.daemon.post('lock.acquire', { name: 'never', agent: 'ann' })
      return async () => {
        db.exec('ROLLBACK')
        db.close()
        await all.daemon.ok('lock.acquire', { name: 'again', agent: 'ann' })
      }
    },
  },
  'agent program missing': {
    kind: 'agent_missing',
    says: /^Task eve-1 could not be started: "could not start: .*\/nowhere\/to/,
    task: 'eve-1',
    stage: async (all) => {
      await all.add('eve-1', 'eve', { project: 'api' })
      return async () => undefined
    },
  },
  'no project': {
    kind: 'no_project',
    says: /^1 task waits, and no project is configured$/,
    task: 'fay-1',
    stage: async (all) => {
      all.write('go')
      await all.idle()
      await all.reconfigure({ agents: AGENTS, projects: {} })
      await all.add('fay-1', 'fay')
      return async () => undefined
    },
  },
} satisfies Record<string, Situation>

/** The cause of this kind, as soon as `stuck.get` names one. */
export const caused = ({ daemon }: Pick<Dispatching, 'daemon'>, kind: Code): Promise<Json> =>
  until(`something is stuck by ${kind}`, async () => {
    const { items } = await daemon.ok('stuck.get', { limit: 200 })
    return items.find((cause: Json) => cause.kind === kind)
  })
