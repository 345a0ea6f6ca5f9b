import { plantAsTold } from '../../machine/test_build.ts'
import { main } from './main.ts'

plantAsTold()

// Our reader has seen enough (`leasehold task list | head`). Node does not end by itself then;
// a command that has something to end in good order does so as on any other TERM.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.kill(process.pid, 'SIGTERM')
})

void main(process.argv.slice(2), process).then((code) => {
  process.exitCode = code
})
