import { startCommand, whyNotStartable } from '../runner/command.ts'

/** What came of a check: nothing to object to, or why not; and the end of what it said. */
export interface Checked {
  failed: string | null
  output: string
}

const OUTPUT_MAX = 8 * 1024

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
  const drained = command.talk('', (said) => {
    output = (output + String(said)).slice(-OUTPUT_MAX)
  })
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
  await drained()
  return { failed: verdict(code, killed, late ? seconds : null), output }
}

function verdict(code: number | null, killed: string | null, late_s: number | null) {
  if (late_s !== null) return `its check took longer than ${late_s} s`
  if (code === 0) return null
  return `its check failed (${killed === null ? `exit ${code}` : `killed by ${killed}`})`
}

const KNOWN_MAX = 200

/** The newest are kept. */
class Newest<T> extends Map<string, T> {
  put(key: string, value: T): void {
    this.set(key, value)
    if (this.size > KNOWN_MAX) this.delete(this.keys().next().value!)
  }
}

/** What commits on top of others became, and what checks said of them: nothing is done twice. */
export class Verdicts {
  readonly tops = new Newest<string>()
  readonly checked = new Newest<Checked>()

  /** One that failed may pass another time, so that is known for one turn only. */
  forgetFailures(): void {
    for (const [key, { failed }] of this.checked) if (failed !== null) this.checked.delete(key)
  }
}
