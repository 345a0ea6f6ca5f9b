import { describe, expect, test } from 'vitest'
import { machine } from '../../src/machine/machine.ts'
import { openSqlite } from '../support/helpers.ts'
import { checkCounts } from '../simulation/counts.ts'
import { PARTICIPANT, ROUNDS, type Running, sandbox, type Sandbox } from '../support/processes.ts'

const STORES = { sqlite: undefined, file: 'file:files' }
const PROGRAM = [process.execPath, PARTICIPANT]
const COUNT = 12
const PATIENT = { timeout: 60_000 * ROUNDS }

interface Added {
  title: string
  id: string
  request: number
}

type When = 'before' | 'after' | 'outside'

function linesOf(text: string): Added[] {
  // The last line may be cut off: it was not said in full, so nothing was acknowledged by it.
  return text
    .slice(0, text.lastIndexOf('\n'))
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as Added)
}

class Writers {
  readonly place: Sandbox
  private readonly env: Record<string, string | undefined>

  constructor(store: keyof typeof STORES, plant?: string) {
    this.place = sandbox()
    this.env = { LEASEHOLD_STORE: STORES[store], LEASEHOLD_PLANT: plant }
    this.place.env['LEASEHOLD_STORE'] = STORES[store]
  }

  start(agent: string, first: number, aim: string[] = []): Running {
    const env = { ...this.env, LEASEHOLD_AGENT: agent, FIRST: `${first}` }
    return this.place.start(['add', `${COUNT}`, ...aim], { program: PROGRAM, env, input: 'go\n' })
  }

  /** Adds tasks until it is killed at the `at`-th. Returns what was acknowledged before that. */
  async killed(agent: string, first: number, when: When, at: number): Promise<Added[]> {
    const running = this.start(agent, first, when === 'outside' ? [] : [when, `${at}`])
    if (when === 'outside') {
      await running.said(new RegExp(`"request":${first + at}\\b`))
      running.kill('SIGKILL')
    }
    const { signal, out } = await running.ended
    if (when !== 'outside') expect(signal).toBe('SIGKILL')
    return linesOf(out)
  }

  /** Asks for everything again, under the same request ids, and is not killed. */
  async again(agent: string, first: number): Promise<Added[]> {
    const { code, out, err } = await this.start(agent, first).ended
    expect({ code, err }).toEqual({ code: 0, err: '' })
    return linesOf(out)
  }

  async tasks(): Promise<Map<string, string[]>> {
    const { items } = await this.place.ok(['task', 'list', '--limit', '1000'])
    const found = new Map<string, string[]>()
    for (const { title, id } of items as Added[])
      found.set(title, [...(found.get(title) ?? []), id])
    return found
  }
}

/** Every promise that did not hold when a writer was killed, and then asked again. */
async function faultsOf(writers: Writers, first: number, when: When, at: number) {
  const faults: string[] = []
  const acknowledged = await writers.killed('writer', first, when, at)
  const found = await writers.tasks()
  for (const { title, id } of acknowledged) {
    if (!found.get(title)?.includes(id)) faults.push(`S4: ${title} was acknowledged, and is lost`)
  }
  const before = await writers.place.cli(['db', 'check'])
  if (before.code !== 0) faults.push(`S11: ${before.err}`)
  const again = await writers.again('writer', first)
  const ids = new Map(again.map(({ title, id }) => [title, id]))
  for (const { title, id } of acknowledged) {
    if (ids.get(title) !== id) faults.push(`S7: ${title} was ${id}, and is now ${ids.get(title)}`)
  }
  for (const [title, all] of await writers.tasks()) {
    if (all.length > 1) faults.push(`S7: ${title} is there ${all.length} times`)
  }
  const after = await writers.place.cli(['db', 'check'])
  if (after.code !== 0) faults.push(`S11: ${after.err}`)
  return faults
}

/** What was counted is what the events say, however often whoever counted was killed. */
async function expectCounted(place: Sandbox): Promise<void> {
  const store = openSqlite(place.state, machine)
  await checkCounts(store).finally(() => store.close())
}

describe.for(['sqlite', 'file'] as const)(
  'kill -9 in the middle of writes on %s',
  PATIENT,
  (store) => {
    test('what was acknowledged is there, and asking again doubles nothing', async () => {
      const writers = new Writers(store)
      const whens = ['before', 'after', 'outside'] as const
      for (let round = 0; round < 3 * ROUNDS; round += 1) {
        const when = whens[round % 3]!
        const at = (round * 5) % COUNT
        const faults = await faultsOf(writers, round * COUNT, when, at)
        expect(faults, `round ${round}: killed ${when} answer ${at}`).toEqual([])
      }
    })

    test('several writers killed at once leave a sound store, and all they answered', async () => {
      const writers = new Writers(store)
      for (let round = 0; round < 2 * ROUNDS; round += 1) {
        const agents = ['one', 'two', 'three', 'four']
        const first = round * COUNT
        const said = await Promise.all(
          agents.map((agent, i) => writers.killed(agent, first, 'outside', 2 + ((round + i) % 6))),
        )
        const found = await writers.tasks()
        for (const { title, id } of said.flat()) expect(found.get(title)).toEqual([id])
        expect(await writers.place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
        await Promise.all(agents.map((agent) => writers.again(agent, first)))
        for (const [title, ids] of await writers.tasks()) expect(ids, title).toHaveLength(1)
      }
      expect((await writers.tasks()).size).toBe(4 * COUNT * 2 * ROUNDS)
      if (store === 'sqlite') await expectCounted(writers.place)
    })
  },
)

describe('these checks fail when the promise is broken', () => {
  test('S4: answered before it was written', async () => {
    const faults = await faultsOf(new Writers('sqlite', 'S4'), 0, 'after', 4)
    expect(faults.join('\n')).toMatch(/S4: writer 4 was acknowledged, and is lost/)
  })

  for (const store of ['sqlite', 'file'] as const) {
    test(`S7: a request id that is ignored, on ${store}`, async () => {
      const faults = await faultsOf(new Writers(store, 'S7'), 0, 'before', 4)
      expect(faults.join('\n')).toMatch(/S7: writer 4 is there 2 times/)
    })
  }
})
