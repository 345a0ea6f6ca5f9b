import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Said {
  code: number | null
  out: string
  err: string
}

/** Without what a developer's shell or npm has set for this project. */
export function clean(home: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(LEASEHOLD|npm_)/i.test(name))
  return { ...Object.fromEntries(kept), HOME: home }
}

/** Runs programs as somebody whose home folder is `home`. */
export class Runner {
  constructor(readonly home: string) {}

  run(command: string[], cwd: string, env: NodeJS.ProcessEnv = {}, input = ''): Said {
    const [file, ...args] = command as [string, ...string[]]
    const { status, signal, stdout, stderr, error } = spawnSync(file, args, {
      ...{ cwd, input, encoding: 'utf8', timeout: 600_000, maxBuffer: 2 ** 26 },
      env: { ...clean(this.home), ...env },
    })
    const err = `${stderr ?? ''}${signal ?? error?.message ?? ''}`
    return { code: status, out: stdout ?? '', err }
  }

  must(command: string[], cwd: string, env: NodeJS.ProcessEnv = {}): string {
    const { code, out, err } = this.run(command, cwd, env)
    if (code !== 0) throw new Error(`${command.join(' ')} exited with ${code}: ${out}${err}`)
    return out
  }
}

function sizeOf(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

export const megabytes = (path: string) => sizeOf(path) / 1e6
export const isBad = ({ code, err }: Said) => code !== 0 || err !== ''
