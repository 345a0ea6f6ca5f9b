import { closeSync, openSync, writeFileSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import { main } from '../../src/doors/cli/main.ts'
import type { Io } from '../../src/doors/io.ts'
import { Ended, type Options, Sandbox } from './processes.ts'

/**
 * A sandbox whose commands run in the process of the test: what they decide and say is what a
 * process of their own would, at a tenth of the time. Whoever tests what a process is (who asks by
 * its ancestors, signals, a terminal, a planted bug, a relative path) gives the command its own:
 * `process`, or the usual sandbox for the whole file.
 */
export class InsideSandbox extends Sandbox {
  private inputs = 0

  override async cli(args: string[], options: Options = {}): Promise<Ended> {
    if (options.program || options.uid !== undefined) return super.cli(args, options)
    const said = { out: '', err: '' }
    const fd = this.inputOf(options.input ?? '')
    const own: Io = {
      env: defined({ ...this.env, ...options.env }),
      cwd: () => options.cwd ?? this.folder,
      stdin: { fd },
      stdout: { write: (text) => (said.out += text) },
      stderr: { write: (text) => (said.err += text) },
      once: () => undefined,
      off: () => undefined,
    }
    try {
      return new Ended(await main(args, own), null, said.out, said.err)
    } finally {
      closeSync(fd)
    }
  }

  /** Runs the command line to its end in a process of its own. */
  process(args: string[], options: Options = {}): Promise<Ended> {
    return super.cli(args, options)
  }

  /** A file may be read to its end at once, as a pipe whose writer has closed it. */
  private inputOf(input: string | Buffer): number {
    if (input.length === 0) return openSync('/dev/null', 'r')
    const path = this.path(`input-${(this.inputs += 1)}`)
    writeFileSync(path, input)
    return openSync(path, 'r')
  }
}

const defined = (env: Options['env'] = {}) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))

/** Such a sandbox for the test that runs now, closed when that ends. */
export function sandbox(): InsideSandbox {
  const made = new InsideSandbox()
  onTestFinished(() => made.close())
  return made
}
