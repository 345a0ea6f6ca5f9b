import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { because, type Ended } from '../support/processes.ts'
import { patternOf, troubleshooting } from './wrong_page.ts'
import { canStage, play } from './wrong_scene.ts'
import { SITUATIONS } from './wrong_situations.ts'

const AT_ONCE = 4

/** Played side by side before anything is compared: each has a place of its own. */
const played = new Map<string, { command: Ended; doctor: Ended }>()
const failed = new Map<string, unknown>()

beforeAll(async () => {
  const left = SITUATIONS.filter(canStage)
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const { wrong } = next
      await play(next).then(
        (said) => played.set(wrong, said),
        (error: unknown) => failed.set(wrong, error),
      )
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}, 300_000)

describe('what is wrong is told, with what to do and the right exit code', () => {
  test('in no fewer than 25 situations, each named once', () => {
    expect(SITUATIONS.length).toBeGreaterThanOrEqual(25)
    expect(new Set(SITUATIONS.map(({ wrong }) => wrong)).size).toBe(SITUATIONS.length)
  })

  test.each(SITUATIONS)('$wrong', (situation) => {
    const { wrong, exit, says, doctor } = situation
    // reason: only root can be another login, and mount a disk to fill
    if (!canStage(situation)) return void because(`not root: ${wrong}`)
    if (failed.has(wrong)) throw failed.get(wrong)
    const said = played.get(wrong)!
    const { code, out, err } = said.command
    expect({ code, said: out + err }).toEqual({
      code: exit,
      said: expect.stringMatching(patternOf(says)),
    })
    const found = said.doctor.out + said.doctor.err
    if (doctor === 'ok') expect({ code: said.doctor.code, found }).toMatchObject({ code: 0 })
    else {
      expect(found).toMatch(patternOf(doctor))
      expect(said.doctor.code).not.toBe(0)
    }
  })
})

test('docs/troubleshooting.md is that table (else: npm run reference)', () => {
  const page = new URL('../../docs/troubleshooting.md', import.meta.url)
  expect(readFileSync(page, 'utf8')).toBe(troubleshooting(SITUATIONS))
})
