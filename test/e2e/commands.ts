import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { BIN, isAlive, type Running, type Sandbox, until } from '../support/processes.ts'

/** Every command says its pid, and finds any command before it that still runs. */
const WITNESS = `
witness() {
  for pid in $(cat "$WITNESS/pids" 2>/dev/null); do
    if grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null; then
      echo "$pid runs beside $1" >> "$WITNESS/overlaps"
    fi
  done
  echo "$1" >> "$WITNESS/pids"
}
leasehold() { "$NODE" "$BIN" "$@"; }
until_there() { while [ ! -e "$WITNESS/$1" ]; do sleep 0.02; done; }
forever() { while :; do sleep 0.1; done; }
witness $$
`

/** Commands under `leasehold run`, and a folder in which they leave what they saw. */
export class Commands {
  readonly folder: string
  /** What every command begins with. */
  readonly witness = WITNESS

  constructor(private readonly place: Sandbox) {
    this.folder = place.path('witness')
    mkdirSync(this.folder)
    Object.assign(place.env, { WITNESS: this.folder, NODE: process.execPath, BIN })
  }

  /** Starts `leasehold run FLAGS -- sh -c BODY`. */
  run(flags: string[], body: string, env: Record<string, string> = {}): Running {
    return this.place.start(['run', ...flags, '--', 'sh', '-c', this.witness + body], { env })
  }

  /** Starts it, and waits until the command says that it has begun. */
  async begun(flags: string[], body: string, env: Record<string, string> = {}): Promise<Running> {
    const running = this.run(flags, `echo begun; ${body}`, env)
    await running.said(/^begun$/m)
    return running
  }

  pids(): number[] {
    return this.read('pids').trim().split('\n').filter(Boolean).map(Number)
  }

  read(name: string): string {
    const path = join(this.folder, name)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** What a command waits for with `until_there`. */
  write(name: string): void {
    writeFileSync(join(this.folder, name), '')
  }

  async expectGone(pids: number[], timeout?: number): Promise<void> {
    await until(`${pids.join()} are gone`, () => !pids.some(isAlive), timeout)
  }

  expectNeverTwo(): void {
    expect(this.read('overlaps')).toBe('')
  }
}

/** In the command's group, deaf to everything but KILL. */
export const DEAF = `sh -c 'trap "" TERM INT HUP
  echo $$ >> "$WITNESS/deaf"; while :; do sleep 0.1; done' &
  while [ ! -s "$WITNESS/deaf" ]; do sleep 0.02; done`
