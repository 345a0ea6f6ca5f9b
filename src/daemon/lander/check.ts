import { setTimeout as after } from 'node:timers/promises'
import { startCommand, whyNotStartable } from '../runner/command.ts'

/** What came of a check: nothing to object to, or why not; and the end of what it said. */
export interface Checked {
  failed: string | null
  output: string
}

const OUTPUT_MAX = 8 * 1024
const DRAIN_MS = 1_000

interface CheckAsk {
  argv: string[]
  cwd: string
  env: Record<string, string>
  seconds: number
  /** Ends it: nobody wants to know any more. */
  signal: AbortSignal
}

/** Runs a project's check in a process group of its own, which never outlives this process. */
export async function runCheck(ask: CheckAsk): Promise<Checked> {
  const { argv, cwd, env, seconds, signal } = ask
  const why = whyNotStartable(argv, env, cwd)
  if (why !== undefined) return { failed: `its check could not be started: ${why}`, output: '' }
  const command = await startCommand({ argv, cwd, env, stdio: 'captured' })
  let output = ''
  const hear = (chunk: Buffer) => void (output = (output + chunk.toString()).slice(-OUTPUT_MAX))
  const closed = [command.stdout!, command.stderr!].map((stream) => {
    stream.on('data', hear)
    return new Promise<void>((resolve) => void stream.once('close', resolve))
  })
  command.stdin!.on('error', () => undefined)
  command.stdin!.end()
  let late = false
  const timer = setTimeout(() => {
    late = true
    void command.stop()
  }, seconds * 1000)
  const stop = () => void command.stop()
  signal.addEventListener('abort', stop)
  command.go()
  const { code, signal: killed } = await command.exited
  clearTimeout(timer)
  signal.removeEventListener('abort', stop)
  await command.stop()
  command.done()
  await Promise.race([Promise.all(closed), after(DRAIN_MS, undefined, { ref: false })])
  return { failed: verdict(code, killed, late ? seconds : null), output }
}

function verdict(code: number | null, killed: string | null, late_s: number | null) {
  if (late_s !== null) return `its check took longer than ${late_s} s`
  if (code === 0) return null
  return `its check failed (${killed === null ? `exit ${code}` : `killed by ${killed}`})`
}
