import { plant, type Promised } from '../../core/planted.ts'
import { main } from './main.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

// Only in the test build: tests show that each promise's check fails when the promise is broken.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}

// Our reader has seen enough (`leasehold task list | head`). Node does not end by itself then;
// a command that has something to end in good order does so as on any other TERM.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.kill(process.pid, 'SIGTERM')
})

void main(process.argv.slice(2), process).then((code) => {
  process.exitCode = code
})
