import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { newRequestId } from '../src/machine/digest.ts'
import { type Goal, median, printGoals, printTable, progress } from './report.ts'

/** What an agent waits for before every edit. */
const COMMAND = resolve('bin/leasehold')
const CALLS = 1_000
const CALLS_QUICK = 100
/** Bare node is started after every so many calls, so that noise hits both alike. */
const EVERY = 5
const RATIO_MAX = 1.3
const RATE = 100
const SECONDS = 15
const SECONDS_QUICK = 5
const CPU_MAX = 0.07
const WARM_UP = 2_000

export interface HookBench {
  node_ms: number
  hook_ms: number
  hook_p99_ms: number
  calls: number
  /** The same ratio with an empty environment: some variables make bare node start slowly. */
  empty_ratio: number
  /** Of one core, while `RATE` calls a second come over one connection. */
  daemon_cpu: number
  goals: Goal[]
}

export async function measureHook(quick: boolean): Promise<HookBench> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const state = join(folder, '.leasehold')
  mkdirSync(state, { mode: 0o700 })
  // An agent's hooks have its environment, whatever that makes of node's start.
  const env: NodeJS.ProcessEnv = { ...process.env, HOME: folder, LEASEHOLD_DIR: state }
  const bare: NodeJS.ProcessEnv = { PATH: env['PATH'], HOME: folder, LEASEHOLD_DIR: state }
  const server = spawn(process.execPath, [COMMAND, 'serve', '--port', '0'], { env, cwd: folder })
  try {
    await new Promise<void>((ready) => server.stdout.once('data', () => ready()))
    const times = measureCalls(env, folder, quick ? CALLS_QUICK : CALLS)
    const emptied = measureCalls(bare, folder, CALLS_QUICK)
    const daemon_cpu = await measureLoad(state, server.pid!, quick ? SECONDS_QUICK : SECONDS)
    const ratio = times.hook_ms / times.node_ms
    const goals = [
      {
        name: 'hook claude pre-tool-use / bare node',
        ratio,
        goal: `≤ ${RATIO_MAX}`,
        met: ratio <= RATIO_MAX,
      },
      {
        name: `daemon's share of a core at ${RATE} calls/s`,
        ratio: daemon_cpu,
        goal: `≤ ${CPU_MAX}`,
        met: daemon_cpu <= CPU_MAX,
      },
    ]
    return { ...times, empty_ratio: emptied.hook_ms / emptied.node_ms, daemon_cpu, goals }
  } finally {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An edit of one of twenty files, again and again, as an agent makes them. */
function measureCalls(env: NodeJS.ProcessEnv, cwd: string, calls: number) {
  const node: number[] = []
  const hook: number[] = []
  const input = (i: number) =>
    JSON.stringify({
      session_id: 'aaaaaaaa-1111-4222-8333-444444444444',
      transcript_path: '/tmp/x.jsonl',
      cwd,
      permission_mode: 'default',
      hook_event_name: 'PreToolUse',
      tool_name: 'Edit',
      tool_input: { file_path: join(cwd, `file-${i % 20}.ts`), old_string: 'a', new_string: 'b' },
      tool_use_id: 'toolu_01',
    })
  for (let i = 0; i < calls; i += 1) {
    if (i % 50 === 0) progress(`hook ${i}`)
    hook.push(run([COMMAND, 'hook', 'claude', 'pre-tool-use'], env, cwd, input(i)))
    if (i % EVERY === 0) node.push(run(['-e', '0'], env, cwd, ''))
  }
  progress('')
  const sorted = hook.toSorted((a, b) => a - b)
  const hook_p99_ms = sorted[Math.floor(sorted.length * 0.99)]!
  return { node_ms: median(node), hook_ms: median(hook), hook_p99_ms, calls }
}

function run(args: string[], env: NodeJS.ProcessEnv, cwd: string, input: string): number {
  const start_ms = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, {
    env,
    cwd,
    input,
    encoding: 'utf8',
  })
  const took_ms = performance.now() - start_ms
  if (status !== 0) throw new Error(`node ${args.join(' ')} exited with ${status}: ${stderr}`)
  return took_ms
}

/** What a hook asks, `RATE` times a second over one connection; the daemon's share of a core. */
async function measureLoad(state: string, pid: number, seconds: number): Promise<number> {
  const { url } = JSON.parse(readFileSync(join(state, 'server.json'), 'utf8')) as { url: string }
  const secret = readFileSync(join(state, 'admin.token'), 'utf8').trim()
  const { hostname, port, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  await new Promise<void>((ready) => socket.once('connect', ready))
  const head = `host: ${host}\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json`
  const call = (i: number) => {
    const path = `src/file-${i % 20}.ts`
    const asked = { paths: [path], checkout: '/bench', mode: 'auto', agent: 'bench' }
    const body = JSON.stringify({ ...asked, request_id: newRequestId() })
    const length = `content-length: ${body.length}`
    return ask(socket, `POST /v1/reserve.touch HTTP/1.1\r\n${head}\r\n${length}\r\n\r\n${body}`)
  }
  // A daemon that has been at work for a while: its code is compiled.
  for (let i = 0; i < WARM_UP; i += 1) await call(i)
  const before_s = cpuSeconds(pid)
  const start_ms = performance.now()
  for (let i = 0; i < seconds * RATE; i += 1) {
    await call(i)
    const due_ms = start_ms + ((i + 1) * 1000) / RATE
    const left_ms = due_ms - performance.now()
    if (left_ms > 0) await new Promise((wait) => setTimeout(wait, left_ms))
  }
  const took_s = (performance.now() - start_ms) / 1000
  socket.destroy()
  return (cpuSeconds(pid) - before_s) / took_s
}

async function ask(socket: Socket, request: string): Promise<void> {
  const answer = new Promise<string>((told) => socket.once('data', (data) => told(String(data))))
  socket.write(request)
  const text = await answer
  if (!text.startsWith('HTTP/1.1 200')) throw new Error(text)
}

/** User and system time of a process; the kernel counts in hundredths. */
function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

export function printHook(bench: HookBench): void {
  console.log(`\nA hook before an edit, with a daemon; ${bench.calls} calls`)
  printTable([
    ['node -e 0, median ms', bench.node_ms.toFixed(1)],
    ['hook claude pre-tool-use, median ms', bench.hook_ms.toFixed(1)],
    ['the same, p99 ms', bench.hook_p99_ms.toFixed(1)],
    ['hook / bare node, environment empty', bench.empty_ratio.toFixed(2)],
    [`daemon at ${RATE} calls/s, % of a core`, (bench.daemon_cpu * 100).toFixed(1)],
  ])
  printGoals(bench.goals)
}
