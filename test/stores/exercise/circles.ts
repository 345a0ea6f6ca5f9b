import { describe, expect, test } from 'vitest'
import { lookStuck } from '../../../src/core/stats/stuck.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { PathVerbs } from '../../support/path_verbs.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')

/** Agents that wait for files by trying again stand in no line: they are found all the same. */
export function exerciseCircles(begin: Begin): void {
  const start = () => {
    const scene = begin()
    return { ...scene, paths: new PathVerbs(scene.store) }
  }

  describe("agents that want each other's files", () => {
    /** Each has a file, and was refused that of the next: only cyd has not tried yet. */
    const three = async () => {
      const scene = start()
      const { paths } = scene
      await paths.touch('a', ada)
      await paths.touch('b', bob)
      await paths.touch('c', cyd)
      await expectRefusal(paths.touch('b', ada), 'held')
      expect((await expectRefusal(paths.touch('c', bob), 'held')).details['circle']).toBe(undefined)
      return scene
    }
    const CIRCLE = [
      'cyd waits for a, which ada has',
      'ada waits for b, which bob has',
      'bob waits for c, which cyd has',
    ]

    test('are told of the circle, who is to let go, and go on then', async () => {
      const { paths, store } = await three()
      const no = await expectRefusal(paths.touch('a', cyd), 'held')
      expect(no.details['circle']).toEqual(CIRCLE)
      expect(no.message).toContain(CIRCLE.join('; '))
      expect(no.next).toMatch(/^It is for you to let go of c, or nobody goes on/)
      const other = await expectRefusal(paths.touch('b', ada), 'held')
      expect(other.next).toMatch(/^It is for cyd to let go of c/)
      const causes = await store.read((view) => lookStuck(view, ada, []))
      expect(causes).toMatchObject([{ kind: 'deadlock', agents: 3 }])
      expect(causes[0]!.what).toMatch(/wait for each other's files$/)
      expect(CIRCLE).toEqual(expect.arrayContaining(causes[0]!.why.split('; ')))
      await paths.release('c', cyd)
      expect(await store.read((view) => lookStuck(view, ada, []))).toEqual([])
      await paths.touch('c', bob)
      expect((await expectRefusal(paths.touch('b', ada), 'held')).details['circle']).toBe(undefined)
    })

    test('and one of them gave up, or is gone, are in no circle', async () => {
      const late = await three()
      late.machine.advance(6 * 60_000)
      for (const [name, who] of [
        ['a', ada],
        ['c', cyd],
      ] as const)
        await late.paths.touch(name, who)
      expect(await late.store.read((view) => lookStuck(view, ada, []))).toEqual([])
      const { paths, machine, store } = await three()
      const process = machine.spawn()
      await paths.touch('d', callerOf('dee'), { process })
      await expectRefusal(paths.touch('a', callerOf('dee'), { process }), 'held')
      await expectRefusal(paths.touch('d', ada), 'held')
      machine.kill(process)
      expect(await store.read((view) => lookStuck(view, ada, []))).toEqual([])
    })

    test('are one circle where a subagent wants what its parent is waited for', async () => {
      const { paths } = start()
      await paths.touch('a', ada)
      await paths.touch('b', bob)
      await expectRefusal(paths.touch('b', callerOf('ada/sub')), 'held')
      const no = await expectRefusal(paths.touch('a', bob), 'held')
      expect(no.details['circle']).toEqual([
        'bob waits for a, which ada has',
        'ada/sub waits for b, which bob has',
      ])
    })

    test('are not named to a token that is bound', async () => {
      const { paths, store } = await three()
      await expectRefusal(paths.touch('a', cyd), 'held')
      const bound = { ...ada, scope: { users: ['ada'], projects: null, task: null } }
      expect(await store.read((view) => lookStuck(view, bound, []))).toEqual([])
      const no = await expectRefusal(paths.touch('b', bound), 'held')
      expect(no.details['circle']).toBe(undefined)
    })
  })
}
