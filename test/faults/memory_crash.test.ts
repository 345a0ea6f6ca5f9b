import { factsOf } from '../../src/core/event.ts'
import { describe, expect, test } from 'vitest'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { Endpoint } from '../memory/endpoint.ts'
import { Notes } from '../memory/scene.ts'
import { postgresUrl } from '../support/postgres.ts'
import { sandbox, type Sandbox, stateOf, TEST_CLI, until } from '../support/processes.ts'
import { mkdirSync, writeFileSync } from 'node:fs'

const STEPS = [
  ...['worker:idle', 'notes:begun', 'embed:computed'],
  ...['embed:written', 'duplicates:found', 'notes:done'],
]
/** In a short run each of them on SQLite, and one on PostgreSQL. */
const SHORT = { sqlite: STEPS, postgres: ['duplicates:found'] }
const LONG = Array.from({ length: 200 }, (_, n) => STEPS[n % STEPS.length]!)
const PROGRAM = [process.execPath, TEST_CLI]

/** A server that does what is behind notes, killed the moment it comes to a step. */
async function killAt(place: Sandbox, step: string): Promise<void> {
  const running = place.start(['--json', 'serve', '--port', '0'], {
    program: PROGRAM,
    env: { LEASEHOLD_STOP_AT: step },
  })
  await until(`it stops at ${step}`, () => stateOf(running.pid) === 'T', 60_000)
  running.kill('SIGKILL')
  await running.ended
}

/** Pairs that are alike, and unlike all others. */
const textOf = (n: number, more = '') =>
  `alpha${n} beta${n} gamma${n} delta${n} epsilon${n} zeta${n} eta${n} theta${n}${more}`

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const steps = process.env['FAULTS'] === 'long' ? LONG : SHORT[kind]
  const kills = steps.length

  test(
    `kill -9 at each step behind notes, ${kills} times: all done once in the end`,
    { timeout: kills * 6_000 + 60_000 },
    async () => {
      const place = sandbox()
      const endpoint = await Endpoint.start()
      mkdirSync(place.state, { mode: 0o700 })
      const config = JSON.stringify(endpoint.config())
      writeFileSync(`${place.state}/config.json`, config, { mode: 0o600 })
      const env = { LEASEHOLD_DIR: place.state }
      const store = kind === 'postgres' ? { LEASEHOLD_STORE: postgresUrl(place.state) } : {}
      place.env = { ...place.env, ...store, LEASEHOLD_EMBEDDINGS: undefined }
      const notes = new Notes(kind, openStore(placeOf({ ...env, ...store }, place.folder)))
      for (let n = 0; n < kills; n += 1) {
        await notes.put(`${n}-a`, textOf(n))
        await notes.put(`${n}-b`, textOf(n, ' iota'))
        await killAt(place, steps[n]!)
      }
      const last = place.start(['--json', 'serve', '--port', '0'], { program: PROGRAM })
      const status = await notes.settled(({ waiting }) => waiting === 0)
      expect(status).toMatchObject({ notes: 2 * kills, embedded: 2 * kills, put_aside: 0 })

      const rows = await notes.store.finder!.vectors(status.provider, '', 10 * kills)
      expect(rows.filter(({ bytes }) => bytes !== null)).toHaveLength(2 * kills)
      const { items } = await notes.ask('duplicate.list', { limit: 1000 })
      expect(items.map(({ a }: { a: { key: string } }) => a.key).toSorted()).toEqual(
        Array.from({ length: kills }, (_, n) => `${n}-a`).toSorted(),
      )
      const events = await notes.store.events(0, 100_000)
      const found = events.filter(({ type }) => type === 'duplicate.found')
      expect(found).toHaveLength(kills)
      expect(new Set(found.map((event) => factsOf(event).id)).size).toBe(kills)
      last.kill('SIGTERM')
      await last.ended
    },
  )
})
