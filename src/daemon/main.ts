import { plantAsTold } from '../machine/test_build.ts'

/** What `leasehold serve` and `dispatch` load: everything that other commands do without. */
export { serve, type Served } from './serve.ts'
export { openAgentDoor } from './door.ts'
export { Dispatcher } from './dispatch/dispatcher.ts'
export { approve, approvedFor, guardedIn, waitingText } from './config/approval.ts'
export { readConfig, readSaid } from './config/config.ts'
export { diffOf, keepOne } from './worktrees/keeper.ts'
export { outliveRejections } from '../doors/broken.ts'
// reason: the room for background jobs
export { DirectMeaning } from './embedding/meaning.ts'

plantAsTold()
