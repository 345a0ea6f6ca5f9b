import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROUNDS, sandbox, type Sandbox } from '../support/processes.ts'
import { needsAim, startAimed } from './aimed.ts'

const FIRST = {
  'lock acquire': ['lock', 'acquire', 'a', '--agent', 'a'],
  'task add': ['task', 'add', 'One'],
  'task list': ['task', 'list'],
  'lock status': ['lock', 'status', 'a'],
}

const markOf = (place: Sandbox) => join(place.state, 'leasehold.db.damage')

describe('a first use that another one overtakes', () => {
  // A look at the database, behind which another process makes it and writes the first commits.
  const LOOKS = ROUNDS > 1 ? [1, 2, 3, 4, 5, 6] : [1, 2, 3]

  test.for(Object.entries(FIRST))(
    '%s is answered, and the store stays sound',
    async ([, args], context) => {
      needsAim(context)
      for (const nth of LOOKS) {
        const place = sandbox()
        const slow = startAimed(place, ['--json', ...args], {
          paths: [join(place.state, 'leasehold.db')],
          call: 'access',
          nth,
        })
        if (!(await slow.isThere())) break
        await place.ok(['lock', 'acquire', 'b', '--agent', 'b'])
        slow.goOn()
        expect(await slow.running.ended, `look ${nth}`).toMatchObject({ code: 0, err: '' })
        expect(existsSync(markOf(place))).toBe(false)
        await place.ok(['lock', 'acquire', 'c', '--agent', 'c'])
      }
    },
  )
})
