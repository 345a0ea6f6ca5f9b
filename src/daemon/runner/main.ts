import { closeSync, openSync, readFileSync } from 'node:fs'
import { plantAsTold } from '../../machine/test_build.ts'
import { attempt } from '../../core/attempt.ts'
import { takeMark } from '../../machine/group.ts'
import { EXITS, Runner } from './runner.ts'
import { parseSpec } from './spec.ts'

/** Until the end of the pipe; nothing when there is none. */
const readSpec = () => attempt(() => readFileSync(0, 'utf8'), '')

/** Nothing ties us to the process that started us: it may die, and its pipes with it. */
function letGo(): void {
  for (const fd of [0, 1, 2]) {
    try {
      closeSync(fd)
    } catch {
      // It was not open: now it will be.
    }
    openSync('/dev/null', fd === 0 ? 'r' : 'w')
  }
}

plantAsTold()
takeMark()
const spec = parseSpec(readSpec())
letGo()
if (!spec) process.exit(EXITS.badSpec)

const runner = new Runner(spec)
process.on('SIGHUP', () => undefined)
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.on(name, () => runner.stop('runner was told to stop'))
}
// An answer that never comes may still keep the loop going: the run is over, and so are we.
void runner.run().then((code) => process.exit(code))
