import { spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * `npm test`: the tests, and beside them what `npm run check` looks at, which has nothing to wait
 * for. What it finds is told at once, and once more below the tests; either fails the whole.
 */
const check = spawn('npm', ['run', '--silent', 'check'], { stdio: ['ignore', 'pipe', 'pipe'] })
let said = ''
for (const stream of [check.stdout, check.stderr]) {
  stream.setEncoding('utf8').on('data', (text: string) => (said += text))
}
const tell = () => process.stdout.write(`\nnpm run check failed:\n${said}\n`)
const checked = once(check, 'close').then(([code]) => {
  if (code !== 0) tell()
  return code as number | null
})

const tests = spawn('vitest', ['run', ...process.argv.slice(2)], { stdio: 'inherit' })
const [tested] = (await once(tests, 'close')) as [number | null]
if ((await checked) !== 0) tell()
process.exitCode = tested === 0 && (await checked) === 0 ? 0 : 1
