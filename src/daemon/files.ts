import { closeSync, constants, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { uniqueId } from '../stores/digest.ts'

/** What a running daemon leaves in the state folder, so that this login's programs find it. */
export interface ServerFile {
  pid: number
  url: string
  version: string
}

const SERVER = 'server.json'
const ADMIN = 'admin.token'

/** Whole or not at all, for this login only, and never through a planted link. */
function writePrivate(folder: string, name: string, text: string): void {
  const temporary = join(folder, `${name}.${uniqueId()}`)
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  const fd = openSync(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
  writeSync(fd, text)
  fsyncSync(fd)
  closeSync(fd)
  renameSync(temporary, join(folder, name))
}

export function announce(folder: string, server: ServerFile, secret: string): void {
  writePrivate(folder, ADMIN, `${secret}\n`)
  writePrivate(folder, SERVER, `${JSON.stringify(server)}\n`)
}

/** Taken away by the daemon that wrote them: a successor's are left alone. */
export function withdraw(folder: string, pid: number): void {
  if (readServer(folder)?.pid !== pid) return
  rmSync(join(folder, SERVER), { force: true })
  rmSync(join(folder, ADMIN), { force: true })
}

export function readServer(folder: string): ServerFile | undefined {
  const text = readText(join(folder, SERVER))
  if (text === undefined) return undefined
  try {
    const server = JSON.parse(text) as ServerFile
    return isLoopback(server.url) ? server : undefined
  } catch {
    return undefined
  }
}

/** A secret goes to this machine only, whatever the file says. */
function isLoopback(url: string): boolean {
  return /^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+\/?$/.test(url)
}

export function readSecret(folder: string): string | undefined {
  return readText(join(folder, ADMIN))?.trim()
}

function readText(path: string): string | undefined {
  try {
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW
    return readFileSync(path, { encoding: 'utf8', flag: flag as unknown as string })
  } catch {
    return undefined
  }
}
