import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call } from '../../src/operations/call.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import { storeOf } from '../doors/parity_doors.ts'
import type { Json } from '../doors/serving.ts'
import { callerOf } from '../support/helpers.ts'
import { type Sandbox, sandbox } from '../support/processes.ts'

/** A folder of notes beside a store, and the commands that tests are made of. */
export class Notes {
  readonly place: Sandbox = sandbox()
  readonly dir = join(this.place.folder, 'notes')

  constructor() {
    mkdirSync(this.dir)
  }

  /** Beside the commands that sync, on the same store. */
  private readonly store = storeOf(this.place)

  ask(name: string, input: Record<string, unknown>): Promise<Json> {
    return call(this.store, operationNamed.get(name)!, input, callerOf('ada')) as Promise<Json>
  }

  put(key: string, content: string, more: object = {}) {
    return this.ask('memory.put', { key, content, ...more })
  }

  get(key: string, more: object = {}) {
    return this.ask('memory.get', { key, ...more })
  }

  sync(...more: string[]) {
    return this.place.ok(['memory', 'sync', this.dir, ...more])
  }

  at = (path: string) => join(this.dir, path)
  read = (path: string) => readFileSync(this.at(path), 'utf8')

  /** What a file says behind its front matter. */
  body = (path: string) => this.read(path).replace(/^---\n[^]*?\n---\n/, '')

  write(path: string, text: string): void {
    mkdirSync(join(this.dir, path, '..'), { recursive: true })
    writeFileSync(this.at(path), text)
  }

  edit(path: string, change: (text: string) => string): void {
    writeFileSync(this.at(path), change(this.read(path)))
  }

  files(): string[] {
    const all = readdirSync(this.dir, { recursive: true, withFileTypes: true })
    const files = all.filter((each) => each.isFile() && !each.name.startsWith('.leasehold'))
    return files
      .map((each) => join(each.parentPath, each.name).slice(this.dir.length + 1))
      .toSorted()
  }
}
