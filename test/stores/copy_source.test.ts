import { describe, expect, test } from 'vitest'
import { checkStore, takeBack } from '../../src/stores/care.ts'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { FENCES_PER_EPOCH } from '../../src/stores/writer/layer.ts'
import { openStore } from '../../src/stores/open.ts'
import { expectRefusal, Verbs } from '../support/helpers.ts'
import { ada, bob, type Kind, placeFor, runSql, withVerbs } from './copy_scene.ts'

describe('the source of a copy', () => {
  test.each<Kind>(['sqlite', 'file', 'postgres'])(
    'of kind %s is closed, and can be revived',
    async (kind) => {
      const [from, to] = [placeFor(kind), placeFor('sqlite')]
      const before = new Verbs(openStore(from))
      const { fence } = await before.take('a', ada)
      await before.take('b', ada)
      expect(await copyStore(from, to)).toMatchObject({ source: 'closed' })
      // Also to those who had it open: a runner, say, which then stops its command in time.
      for (const verbs of [before, new Verbs(openStore(from))]) {
        await expectRefusal(verbs.renew('a', ada, fence), 'unavailable')
        expect(await verbs.lease('a')).toMatchObject({ holder: 'ada', fence })
        await expectRefusal(
          Promise.all([verbs.take('c', bob), verbs.take('d', bob)]),
          'unavailable',
        )
      }
      await expectRefusal(copyStore(from, placeFor('sqlite')), 'unavailable')
      await withVerbs(to, (verbs) => verbs.renew('a', ada, fence))
      expect(await checkStore(from)).toMatchObject({ head: { position: 2 } })

      await takeBack(from)
      await expectRefusal(before.renew('a', ada, fence), 'lease_expired')
      expect((await before.take('a', bob)).fence).toBe(FENCES_PER_EPOCH + 1)
      await before.store.close()
      await expectRefusal(takeBack(from), 'invalid')
    },
  )

  test('stays in use where that is asked for, or where it cannot be written', async () => {
    const from = placeFor('sqlite')
    const verbs = new Verbs(openStore(from))
    await verbs.take('a', ada)
    const kept = await copyStore(from, placeFor('sqlite'), { keep_source: true })
    expect(kept).toMatchObject({ source: 'kept' })
    await runSql(
      from,
      `CREATE TRIGGER no BEFORE UPDATE OF boot ON head WHEN new.boot LIKE 'moved%'
      BEGIN SELECT RAISE(ABORT, 'not this one'); END`,
    )
    const open = await copyStore(from, placeFor('sqlite'))
    expect(open.source).toMatchObject({ open: expect.stringMatching(/not this one/) })
    await verbs.take('b', ada)
    await verbs.store.close()
  })
})
