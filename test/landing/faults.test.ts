import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { Crew, random } from './crew.ts'

const LONG = process.env['FAULTS'] === 'long'
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const BRANCHES = LONG ? 50 : 10
const ROUNDS = LONG ? 5 : 1

// reason: faults come at random times; what they do is judged, not when
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** One of those that may be hurt is stopped for a while, or killed and replaced; until `isOver`. */
async function hurt(crew: Crew, seed: number, isOver: () => boolean): Promise<string> {
  const below = random(seed)
  const victims: ChildProcess[] = [await crew.start(), await crew.start()]
  const count = { stops: 0, kills: 0 }
  while (!isOver()) {
    await pause(below(250))
    const lander = await crew.lander()
    const found = victims.findIndex(({ pid }) => pid === lander)
    const i = found === -1 ? below(2) : found
    const victim = victims[i]!
    if (below(2) === 0) {
      count.kills += 1
      await crew.kill(victim)
      victims[i] = await crew.start()
      continue
    }
    count.stops += 1
    victim.kill('SIGSTOP')
    await crew.stopped(victim)
    if (victim.pid === (await crew.lander())) await crew.expire()
    // Its successor is somewhere on its way when it goes on
    await pause(below(400))
    victim.kill('SIGCONT')
  }
  return `${count.stops} stops, ${count.kills} kills`
}

describe('landers of which some are stopped and killed', () => {
  test.each(Array.from({ length: ROUNDS }, (_, i) => SEED + i))(
    'land all that can be landed, once and in order, and only what was checked (seed %i)',
    async (seed) => {
      const crew = new Crew({ together: 4 })
      const asked = await crew.work(BRANCHES)
      let isOver = false
      const began = performance.now()
      await crew.start()
      const hurting = hurt(crew, seed, () => isOver)
      const landings = await crew.over(asked, 300_000).finally(() => (isOver = true))
      const seconds = (performance.now() - began) / 1000
      const faults = await hurting
      const found = await crew.judge(landings)
      expect(found.landed + found.red + found.conflict).toBe(BRANCHES)
      const checks = crew.checks().length
      process.stdout.write(
        `seed ${seed}: ${JSON.stringify(found)}, ${checks} checks, ${faults}, ` +
          `${seconds.toFixed(1)} s\n`,
      )
    },
    LONG ? 400_000 : 90_000,
  )

  test.each([
    ['moves nothing once its successor has begun', undefined],
    ['would move the target if git did not look at its term: a planted bug', 'R55'],
  ])('one that was paused %s', async (_, bug) => {
    const gate = join(temporaryFolder(), 'go')
    const entered = `${gate}.entered`
    // The successor is in its check when the one before it goes on.
    const until_open = `until [ -e ${gate} ]; do sleep 0.02; done`
    const wait = `if [ -e ${entered}.armed ]; then : > ${entered}; ${until_open}; fi; `
    const crew = new Crew({}, 0, wait)
    const { repo } = crew.scene
    const asked = await crew.work(1)
    const before = repo.head('main')
    const plant = bug === undefined ? {} : { LEASEHOLD_PLANT: bug }
    const first = await crew.start({ LEASEHOLD_STOP_AT: 'lander:proposed', ...plant })
    await crew.stopped(first)
    expect((await crew.scene.landing(asked[0]!.id)).candidate).not.toBeNull()
    writeFileSync(`${entered}.armed`, '')
    await crew.start()
    await crew.expire()
    await until('the successor checks', () => existsSync(entered))
    first.kill('SIGCONT')
    first.kill('SIGTERM')
    await once(first, 'exit')
    const hasMoved = repo.head('main') !== before
    writeFileSync(gate, '')
    const [ended] = await crew.over(asked, 30_000)
    if (bug === undefined) {
      expect(hasMoved).toBe(false)
      expect(ended).toMatchObject({ status: 'landed' })
      await crew.judge([ended!])
    } else {
      expect(hasMoved).toBe(true)
      // Its successor finds all of it there, and gives back what has been landed.
      expect(ended).toMatchObject({ status: 'returned' })
      await expect(crew.judge([ended!])).rejects.toThrow('to deeply equal')
    }
  })
})

// reason: a measurement that takes minutes
const RATE = LONG ? test : test.skip

RATE(
  'several together need fewer checks than one by one',
  async () => {
    const took: Record<number, { seconds: number; checks: number }> = {}
    for (const together of [1, 4, 8]) {
      const crew = new Crew({ together }, 0.5)
      const asked = await crew.work(BRANCHES)
      const began = performance.now()
      await crew.start()
      await crew.judge(await crew.over(asked, 300_000))
      took[together] = {
        seconds: Math.round((performance.now() - began) / 100) / 10,
        checks: crew.checks().length,
      }
    }
    process.stdout.write(`${BRANCHES} branches, a check of 0.5 s: ${JSON.stringify(took)}\n`)
    expect(took[4]!.checks).toBeLessThan(took[1]!.checks)
  },
  900_000,
)
