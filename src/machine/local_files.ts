import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { writePrivate } from './private_file.ts'

/**
 * Small files beside the store that hooks of this machine leave for one another, each kind in a
 * folder of its own. No promise rests on one: what cannot be kept or read is taken for none.
 */
export class LocalFiles {
  readonly folder: string

  constructor(state: string, kind: 'guard' | 'left' | 'seen') {
    this.folder = join(state, kind)
  }

  names(): string[] {
    return attempt(() => readdirSync(this.folder), [])
  }

  bytes(name: string): Uint8Array | undefined {
    return attempt(() => readFileSync(join(this.folder, name)), undefined)
  }

  read<T>(name: string, otherwise: T): T {
    return attempt(() => JSON.parse(readFileSync(join(this.folder, name), 'utf8')) as T, otherwise)
  }

  /** Only in a state folder that is there: with a token of a server elsewhere there may be none. */
  put(name: string, value: object | Uint8Array, synced = false): void {
    const bytes = value instanceof Uint8Array ? value : JSON.stringify(value)
    attempt(() => mkdirSync(this.folder, { mode: 0o700 }), undefined)
    attempt(() => writePrivate(this.folder, name, bytes, { synced }), undefined)
  }

  drop(name: string): void {
    rmSync(join(this.folder, name), { force: true })
  }
}
