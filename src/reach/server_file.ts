import { runVariables } from '../machine/detached.ts'
import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { word } from '../core/quote.ts'
import { Refusal } from '../core/refusal.ts'
import { systemCode } from '../machine/errors.ts'
import { loginOfPort, processOfPort } from '../machine/listener.ts'
import { SERVER, STATE_NAME } from '../machine/place.ts'
import { readPrivate, writePrivate } from '../machine/private_file.ts'
import { environmentOf } from '../machine/proc.ts'
import { host, processFact } from '../machine/process.ts'
import { folderIn } from '../stores/place.ts'

/** What a running daemon leaves in the state folder, so that this login's programs find it. */
export interface ServerFile {
  pid: number
  /** Its start time, and where that means something; files of older servers have neither. */
  start?: number
  seat?: string
  url: string
  version: string
  /** Device and inode of the folder that it serves: in a copy of that folder, they are others. */
  folder: string
}

export const ADMIN = 'admin.token'

/** Whether a server has left both here: then this is a state folder, whatever its name. */
export const isServed = (folder: string) =>
  [SERVER, ADMIN].every((name) => fs.existsSync(join(folder, name)))

type Announced = Omit<ServerFile, 'folder'>

export function announce(folder: string, server: Announced, secret: string): void {
  const file: ServerFile = { ...server, folder: identityOf(folder) }
  writePrivate(folder, ADMIN, `${secret}\n`)
  writePrivate(folder, SERVER, `${JSON.stringify(file)}\n`)
}

function identityOf(folder: string): string {
  const { dev, ino } = fs.statSync(folder)
  return `${dev}:${ino}`
}

/**
 * Taken away by the daemon that wrote them: a successor's are left alone. On a disk that takes no
 * changes they stay; they name a process that is gone, so nobody believes them.
 */
export function withdraw(folder: string, pid: number): void {
  if (readServer(folder)?.pid !== pid) return
  try {
    for (const name of [SERVER, ADMIN]) fs.rmSync(join(folder, name), { force: true })
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}

/** The server of this very folder: what a copy of it says is about the original. */
export function readServer(folder: string): ServerFile | undefined {
  const text = readPrivate(join(folder, SERVER))
  if (text === undefined) return undefined
  try {
    const server = JSON.parse(text) as ServerFile
    return isLoopback(server.url) && server.folder === identityOf(folder) ? server : undefined
  } catch {
    return undefined
  }
}

/** A secret goes to this machine only, whatever the file says; a name may mean anything. */
function isLoopback(url: string): boolean {
  return /^http:\/\/(127\.0\.0\.1|\[::1\]):\d+\/?$/.test(url)
}

function readSecret(folder: string): string | undefined {
  return readPrivate(join(folder, ADMIN))?.trim()
}

/**
 * The server of this folder, if it lives and its port belongs to this login. One that was killed
 * leaves its file behind, and another login may have its port by now: it would be sent a secret.
 */
export function serverIn(folder: string): ServerFile | undefined {
  const server = readServer(folder)
  if (!server) return undefined
  const { pid, start = -1, seat = '' } = server
  const fact = processFact({ host, seat, pid, start })
  if (fact === 'dead') return undefined
  const login = loginOfPort(server.url)
  return (login === undefined ? fact === 'alive' : login === process.getuid?.())
    ? server
    : undefined
}

/** What a person calls the server of this folder: as the repository that it is in. */
export const serverName = (folder: string) =>
  word(basename(basename(folder) === STATE_NAME ? dirname(folder) : folder))

/** Who listens at a port, in words: of a server of ours, its name. */
export function whoHas(port: number): string {
  const pid = processOfPort(port)
  if (pid === undefined) return 'a program that this login cannot see'
  const folder = folderOfServer(pid)
  if (folder !== undefined) return `the leasehold server of ${serverName(folder)} (PID: ${pid})`
  return `${word(fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim())} (PID: ${pid})`
}

/** The state folder that a process serves, if it is a server of this login. */
function folderOfServer(pid: number): string | undefined {
  try {
    const folder = folderIn(environmentOf(pid) ?? {}, fs.readlinkSync(`/proc/${pid}/cwd`))
    return readServer(folder)?.pid === pid ? folder : undefined
  } catch {
    return undefined
  }
}

/** Whether this is what the server of `folder` has left for this login's own command line. */
const isOwnSecret = (folder: string, token: string) =>
  attempt(() => readSecret(folder), undefined) === token

/** A daemon that can be asked: where it is, and with what secret. */
export interface Daemon {
  url: string
  secret: string
  /** Its process, where the state folder names it. */
  pid?: number
  /** False with `LEASEHOLD_TOKEN`: then that token is all we are, and the store is not ours. */
  isOurs: boolean
}

/**
 * The daemon that this caller uses, if one runs. With `LEASEHOLD_TOKEN` set that token is used
 * alone, never the admin's secret or the store.
 */
export function findDaemon(env: NodeJS.ProcessEnv, folder: string): Daemon | undefined {
  const server = serverIn(folder)
  const token = env['LEASEHOLD_TOKEN']
  if (token) {
    if (!/^[!-~]+$/.test(token)) {
      throw new Refusal('unauthorized', 'LEASEHOLD_TOKEN is not a token', {
        next: 'Set it to what `leasehold token create` printed, with nothing around it.',
      })
    }
    const url = env['LEASEHOLD_URL'] ?? server?.url
    const pid = server && url === server.url ? { pid: server.pid } : {}
    if (url) return { url, secret: token, isOurs: false, ...pid }
    throw new Refusal('unavailable', 'LEASEHOLD_TOKEN is set, but no server is known', {
      next: 'Set LEASEHOLD_URL, or start one: leasehold up',
    })
  }
  const secret = server && readSecret(folder)
  if (!server || secret === undefined) return undefined
  return { url: server.url, secret, isOurs: true, pid: server.pid }
}

/**
 * The environment as those gave it who started us. A run has its token whatever a command of it
 * leaves out; and the secret of this login's own command line makes nobody what they are not.
 */
export function standing(given: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  const { LEASEHOLD_TOKEN: token, ...env } = given
  if (token && !isOwnSecret(folder, token)) return given
  return { ...env, ...runVariables(folder) }
}
