import { plant, type Promised } from '../core/planted.ts'

/** What `leasehold serve` and `dispatch` load: everything that other commands do without. */
export { serve, type Served } from './serve.ts'
export { openAgentDoor } from './dispatch/agent_door.ts'
export { Dispatcher } from './dispatch/dispatcher.ts'
export { approve, approvedFor, guardedIn, waitingText } from './config/approval.ts'
export { readConfig, readSaid } from './config/config.ts'
export { diffOf, keepOne } from './worktrees/ask.ts'
export { outliveRejections } from '../doors/broken.ts'
// reason: the room for background jobs
export { DirectMeaning } from './embedding/meaning.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

// A bundle of its own has a switch of its own: see the command line's.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}
