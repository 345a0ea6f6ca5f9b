import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sha256 } from '../../src/machine/digest.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { postgresUrl } from '../support/postgres.ts'
import { ROUNDS, sandbox, type Sandbox } from '../support/processes.ts'
import { type Aim, needsAim, startAimed } from './aimed.ts'

const FIRST: Record<string, string[]> = {
  'lock acquire': ['lock', 'acquire', 'a', '--agent', 'a'],
  'task add': ['task', 'add', 'One'],
  'task list': ['task', 'list'],
  'lock status': ['lock', 'status', 'a'],
}

const markOf = (place: Sandbox) => join(place.state, 'leasehold.db.damage')
const databaseOf = (place: Sandbox) => join(place.state, 'leasehold.db')

/** Where a first use on each store looks at what another one makes behind that look. */
const LOOKS: Record<string, (place: Sandbox) => Aim[]> = {
  sqlite: (place) => {
    const witness = join(place.state, 'witness.leasehold.db')
    return [
      { paths: [databaseOf(place)], call: 'access' },
      { paths: [databaseOf(place)], call: 'access', nth: 2 },
      { paths: [databaseOf(place)], call: 'statx' },
      { paths: [databaseOf(place)], call: 'openat' },
      { paths: [witness], call: 'openat' },
    ]
  },
  file: (place) => {
    const witness = join(place.path('files'), 'witness.state')
    return [
      { paths: [place.path('files')], call: 'openat' },
      { paths: [place.path('files')], call: 'openat', nth: 2 },
      { paths: [witness], call: 'openat' },
      { paths: [join(place.path('files'), 'write.lock')], call: 'openat' },
    ]
  },
  // What is there is looked for in the database, and what was seen of it in this folder.
  postgres: (place) => {
    const { shown } = addressOf(place.env['LEASEHOLD_STORE']!)
    const witness = `witness.postgres.${sha256(shown).slice(0, 8)}`
    return [{ paths: [join(place.state, witness)], call: 'openat' }]
  },
}

function on(store: string): Sandbox {
  const place = sandbox()
  if (store === 'file') place.env['LEASEHOLD_STORE'] = `file:${place.path('files')}`
  if (store === 'postgres') place.env['LEASEHOLD_STORE'] = postgresUrl(place.folder)
  return place
}

describe('a first use that another one overtakes', () => {
  for (const [store, looks] of Object.entries(LOOKS)) {
    test(`on ${store} is answered, and the store stays sound`, async (context) => {
      needsAim(context)
      const commands = Object.entries(FIRST).slice(0, ROUNDS > 1 ? 4 : 1)
      const aims = looks(on(store)).map((_, i) => i)
      for (const [name, args] of commands) {
        for (const i of aims) {
          const place = on(store)
          const aim = looks(place)[i]!
          const slow = startAimed(place, ['--json', ...args], aim)
          if (await slow.isThere()) {
            await place.ok(['lock', 'acquire', 'b', '--agent', 'b'])
            await slow.goOn()
          }
          expect(await slow.running.ended, `${name}, ${aim.call} ${i}`).toMatchObject({ code: 0 })
          expect(existsSync(markOf(place))).toBe(false)
          await place.ok(['lock', 'acquire', 'c', '--agent', 'c'])
        }
      }
    })
  }

  test.for(Object.entries(FIRST).slice(1))(
    'on sqlite, %s too is answered',
    async ([name, args], context) => {
      needsAim(context)
      const place = sandbox()
      const aim: Aim = { paths: [databaseOf(place)], call: 'access', nth: 2 }
      const slow = startAimed(place, ['--json', ...args], aim)
      expect(await slow.isThere()).toBe(true)
      await place.ok(['lock', 'acquire', 'b', '--agent', 'b'])
      await slow.goOn()
      expect(await slow.running.ended, name).toMatchObject({ code: 0, err: '' })
      expect(existsSync(markOf(place))).toBe(false)
    },
  )
})

/** 200 stores by 20 processes each where there is time. */
const STORES_EACH = Number(process.env['RUNS'] ?? (ROUNDS > 1 ? 200 : 2))
const PROCESSES = ROUNDS > 1 || process.env['RUNS'] ? 20 : 6

describe.for(['sqlite', 'file', 'postgres'])('first uses of a new store on %s', (store) => {
  test(
    `by ${PROCESSES} at once are all answered, ${STORES_EACH} times, every second one aimed at`,
    { timeout: 60_000 * STORES_EACH },
    async (context) => {
      needsAim(context)
      const commands = Object.values(FIRST)
      let stopped = 0
      for (let i = 0; i < STORES_EACH; i += 1) {
        const place = on(store)
        const aims = LOOKS[store]!(place)
        // The first looks, and goes on when all others have had their answers.
        const aim = aims[Math.floor(i / 2) % aims.length]!
        const slow = i % 2 === 1 ? startAimed(place, FIRST['lock acquire']!, aim) : undefined
        if (await slow?.isThere()) stopped += 1
        const ended = await Promise.all(
          Array.from({ length: PROCESSES - (slow ? 1 : 0) }, (_, n) => {
            const [noun, verb, ...rest] = commands[n % commands.length]!
            // A lock of its own for each: nobody is refused for another reason.
            const names = noun === 'lock' ? [`a${n}`] : rest
            return place.cli(['--json', noun!, verb!, ...names])
          }),
        )
        await slow?.goOn()
        if (slow) ended.push(await slow.running.ended)
        expect(ended.filter(({ code }) => code !== 0)).toEqual([])
        expect(existsSync(markOf(place))).toBe(false)
        await place.close()
      }
      process.stdout.write(`${store}: ${STORES_EACH} stores, ${stopped} with one that stopped\n`)
    },
  )
})

describe('damage that is mended while somebody is about to tell of it', () => {
  test.for(['lock status', 'lock acquire'])('%s leaves no mark behind', async (name, context) => {
    needsAim(context)
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'kept', '--agent', 'a'])
    await place.ok(['db', 'backup', place.path('copy')])
    writeFileSync(databaseOf(place), 'garbage')
    const aim: Aim = { paths: [databaseOf(place)], call: 'openat' }
    const slow = startAimed(place, ['--json', ...FIRST[name]!], aim)
    expect(await slow.isThere()).toBe(true)
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    await slow.goOn()
    expect(await slow.running.ended).toMatchObject({ code: 0, err: '' })
    expect(existsSync(markOf(place))).toBe(false)
  })
})
