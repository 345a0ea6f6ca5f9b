import { GENESIS } from './writer/chain.ts'
import type { Head } from './port.ts'

/** A store in which nothing has happened yet. */
export const EMPTY_HEAD: Head = {
  epoch: 0,
  fences: 0,
  task_number: 0,
  position: 0,
  hash: GENESIS,
  boot: '',
  offset_ms: 0,
  last_ms: 0,
}
