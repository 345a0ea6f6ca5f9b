import { plant, type Promised } from '../../core/planted.ts'
import * as locks from '../../operations/locks.ts'
import * as runs from '../../operations/runs.ts'
import * as worktrees from '../../operations/worktrees.ts'
import { openDirectly } from '../../reach/direct.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

// A bundle of its own has a switch of its own: see the command line's.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}

/** All that a runner, or a keeper, ever asks. */
const ASKED = [
  ...[runs.start, runs.finish, runs.get, locks.renew],
  ...[worktrees.enter, worktrees.record],
]

/** In a bundle of its own: it takes long to load. */
export function openDirect(env: NodeJS.ProcessEnv, cwd: string) {
  return openDirectly(ASKED, env, cwd)
}
