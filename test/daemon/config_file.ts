import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/helpers.ts'

/** A state folder inside a project, as `init` makes it, with this in its config file. */
export function stateFolder(said?: unknown): string {
  const folder = join(temporaryFolder(), '.leasehold')
  mkdirSync(folder)
  if (said !== undefined) write(folder, said)
  return folder
}

export const fileOf = (folder: string) => join(folder, 'config.json')

export function write(folder: string, said: unknown): void {
  writeFileSync(fileOf(folder), typeof said === 'string' ? said : JSON.stringify(said))
}
