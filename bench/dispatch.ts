import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Server, startServer, stopServer } from './http.ts'
import { median, progress } from './report.ts'

const ROUNDS = 40
const ROUNDS_QUICK = 10
const LOOK_MS = 2

/** Prints when it began, in seconds since 1970: what both ways start. */
const COMMAND = ['/bin/date', '+%s.%N']

export interface DispatchLatency {
  rounds: number
  /** From `queue.add` asked to the command begun. */
  ours_ms: number
  /** From the start of a node that does nothing but start the same command. */
  node_ms: number
}

/**
 * How long an idle slot takes to begin the command of a task that was just enqueued, against a bare
 * node that starts the same command: in turn, medians.
 */
export async function measureDispatch(quick: boolean): Promise<DispatchLatency> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  chmodSync(folder, 0o700)
  const config = {
    projects: { bench: { path: folder, agent: 'clock' } },
    agents: { clock: { command: COMMAND } },
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const server = await startServer(folder, join(folder, 'leasehold.db'))
  try {
    const ours: number[] = []
    const bare: number[] = []
    const rounds = quick ? ROUNDS_QUICK : ROUNDS
    for (let round = 0; round <= rounds; round += 1) {
      progress(`dispatch ${round} of ${rounds}`)
      const mine = await dispatchOnce(server, folder)
      const theirs = bareOnce()
      if (round > 0) ours.push(mine)
      if (round > 0) bare.push(theirs)
    }
    progress('')
    return { rounds, ours_ms: median(ours), node_ms: median(bare) }
  } finally {
    await stopServer(server)
    rmSync(folder, { recursive: true })
  }
}

async function dispatchOnce(server: Server, folder: string): Promise<number> {
  const asked_ms = performance.timeOrigin + performance.now()
  const input = { prompt: 'now', project: 'bench', user: 'bench' }
  const { task } = (await ask(server, 'queue.add', input)) as { task: { id: string } }
  for (;;) {
    const run = (await ask(server, 'task.get', { id: task.id })) as { status: string }
    if (run.status === 'done') break
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
  const began = readFileSync(join(folder, 'runs', `${task.id}.1`, 'output.log'), 'utf8')
  return Number(began) * 1000 - asked_ms
}

function bareOnce(): number {
  const [program, ...args] = COMMAND
  const given = `${JSON.stringify(program)}, ${JSON.stringify(args)}, { stdio: 'inherit' }`
  const script = `require('child_process').spawn(${given})`
  const asked_ms = performance.timeOrigin + performance.now()
  const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  return Number(stdout) * 1000 - asked_ms
}

async function ask({ url, secret }: Server, operation: string, input: object): Promise<unknown> {
  const response = await fetch(new URL(`/v1/${operation}`, url), {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  if (!response.ok) throw new Error(await response.text())
  return response.json()
}
