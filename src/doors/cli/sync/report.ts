import pc from 'picocolors'
import { visible } from '../../unseen.ts'
import type { Synced } from './folder.ts'

/** What a sync has done, a line each; empty where that is nothing. */
export function linesOf(synced: Synced): string {
  const { imported, exported, removed, deleted, conflicts, skipped } = synced
  // Names of files are written by others too.
  const line = (what: string, path: string, more = '') => `${what} ${visible(path + more)}`
  const lines = [
    ...imported.map(({ path, version }) => line(pc.green('in'), path, ` (version ${version})`)),
    ...exported.map((path) => line(pc.green('out'), path)),
    ...deleted.map(({ path }) => line(pc.yellow('deleted'), path, ': its note')),
    ...removed.map((path) => line(pc.yellow('removed'), path, ': the note is gone')),
    ...conflicts.map(({ path, id }) => {
      return line(pc.red('conflict'), path, `: leasehold memory conflicts --id ${id}`)
    }),
    ...skipped.map(({ path, why }) => line(pc.yellow('skipped'), path, `: ${why}`)),
  ]
  return lines.join('\n')
}
