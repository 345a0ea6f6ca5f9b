import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { LINUX } from './proc.ts'

const TABLES = { 4: '/proc/net/tcp', 6: '/proc/net/tcp6' } as const
/** As the kernel writes 127.0.0.1 and ::1, whose words are in the machine's own order. */
const LOOPBACK = { 4: '0100007F', 6: '00000000000000000000000001000000' } as const
const LISTENS = '0A'
const HEADING = 'st'
const PIECE = 16 * 1024

/**
 * The uid of the login that listens at a loopback address, as the kernel tells it; undefined when
 * nobody is seen to. Listening sockets come first in these tables: little of a long one is read.
 */
export function loginOfPort(url: string): number | undefined {
  const { hostname, port } = new URL(url)
  const version = hostname === '[::1]' ? 6 : 4
  const local = LOOPBACK[version] + tailOf(Number(port || 80))
  for (const { address, uid } of listeners(version)) if (address === local) return uid
  return undefined
}

/** The process that listens at a port, at whichever address; undefined if it cannot be seen. */
export function processOfPort(port: number): number | undefined {
  const sockets = [...listeners(4), ...listeners(6)]
    .filter(({ address }) => address.endsWith(tailOf(port)))
    .map(({ inode }) => `socket:[${inode}]`)
  if (sockets.length === 0) return undefined
  return readdirSync('/proc')
    .map(Number)
    .find((pid) => pid > 0 && opened(pid).some((each) => sockets.includes(each)))
}

function opened(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
  } catch {
    // It is another login's, or it is ending.
    return []
  }
}

const tailOf = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`

function* listeners(version: 4 | 6): Generator<{ address: string; uid: number; inode: string }> {
  for (const line of LINUX ? linesOf(TABLES[version]) : []) {
    const [, address = '', , state, , , , uid, , inode = ''] = line.trim().split(/\s+/)
    if (state === LISTENS) yield { address, uid: Number(uid), inode }
    else if (state !== HEADING) return
  }
}

function* linesOf(path: string): Generator<string> {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return
  }
  try {
    const piece = Buffer.alloc(PIECE)
    let rest = ''
    for (let n = readSync(fd, piece); n > 0; n = readSync(fd, piece)) {
      const lines = (rest + piece.toString('latin1', 0, n)).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  } finally {
    closeSync(fd)
  }
}
