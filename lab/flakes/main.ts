import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * `npm run flakes [-- --hours 1 --load 4 --seed N --only e2e]`: plays one test file after another
 * in random order, while `load` programs burn processors; every third time on one processor only.
 * Keeps output and duration of each red one, and exits with 1 if there was any. The seed gives the
 * order.
 */
const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '1' },
    load: { type: 'string', default: '4' },
    seed: { type: 'string' },
    only: { type: 'string', default: '' },
    out: { type: 'string', default: 'flakes' },
  },
})

const ROOT = resolve(import.meta.dirname, '../..')
/** Named here: in place, knip takes it for the program of a package. */
const TASKSET = 'taskset'
const BURN = 'for (;;) Math.sqrt(Math.random())'
const EVERY_ON_ONE = 3

/** Of one number the same numbers follow, so that a round can be played again (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

function burners(count: number): ChildProcess[] {
  return Array.from({ length: count }, () => {
    return spawn(process.execPath, ['-e', BURN], { stdio: 'ignore' })
  })
}

interface Round {
  file: string
  onOne: boolean
}

/** Plays a file once, and returns its exit code, what it said and how long it took. */
async function play({ file, onOne }: Round) {
  const argv = [join(ROOT, 'node_modules/.bin/vitest'), 'run', file, '--maxWorkers=1']
  const [program, ...args] = onOne ? [TASKSET, '-c', '0', ...argv] : argv
  const begun = performance.now()
  const child = spawn(program!, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, said, seconds: Math.round((performance.now() - begun) / 1000) }
}

async function hunt(): Promise<number> {
  const first = Number(values.seed ?? Date.now() % 1_000_000)
  const random = randomFrom(first)
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && path.includes(values.only))
    .map((path) => join('test', path))
    .toSorted()
  if (files.length === 0) throw new Error(`no test file has ${values.only} in its name`)
  const until_ms = performance.now() + Number(values.hours) * 3_600_000
  mkdirSync(values.out, { recursive: true })
  let red = 0
  for (let n = 1; performance.now() < until_ms; n += 1) {
    const file = files[Math.floor(random() * files.length)]!
    const round = { file, onOne: n % EVERY_ON_ONE === 0 }
    const { code, said, seconds } = await play(round)
    const line = `${code === 0 ? 'green' : 'RED'} ${JSON.stringify({ ...round, seconds })}`
    process.stdout.write(`${line}\n`)
    appendFileSync(join(values.out, 'rounds.log'), `${line}\n`)
    if (code === 0) continue
    red += 1
    writeFileSync(join(values.out, `${n}-${file.replaceAll('/', '_')}.log`), `${line}\n${said}`)
  }
  process.stdout.write(`seed ${first}: ${red} red; what they said is in ${values.out}\n`)
  return red
}

const burning = burners(Number(values.load))
try {
  process.exitCode = (await hunt()) > 0 ? 1 : 0
} finally {
  for (const child of burning) child.kill('SIGKILL')
}
