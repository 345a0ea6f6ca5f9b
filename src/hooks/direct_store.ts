import * as hooks from '../operations/hooks.ts'
import * as locks from '../operations/locks.ts'
import * as reservations from '../operations/reservations.ts'
import * as tasks from '../operations/tasks.ts'
import { openDirectly } from '../reach/direct.ts'

const { touch, check, list, release } = reservations

/** All that a hook ever asks. */
const ASKED = [
  touch,
  check,
  list,
  release,
  locks.lockStatus,
  tasks.list,
  hooks.bypass,
  hooks.notice,
]

/** In a bundle of its own: it takes long to load. */
export function openDirect(env: NodeJS.ProcessEnv, cwd: string) {
  return openDirectly(ASKED, env, cwd)
}
