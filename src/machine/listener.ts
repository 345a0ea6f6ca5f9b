import { closeSync, openSync, readSync } from 'node:fs'
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
  if (!LINUX) return undefined
  const { hostname, port } = new URL(url)
  const version = hostname === '[::1]' ? 6 : 4
  const hex = Number(port || 80).toString(16)
  const local = `${LOOPBACK[version]}:${hex.toUpperCase().padStart(4, '0')}`
  for (const line of linesOf(TABLES[version])) {
    const [, address, , state, , , , uid] = line.trim().split(/\s+/)
    if (address === local && state === LISTENS) return Number(uid)
    if (state !== LISTENS && state !== HEADING) return undefined
  }
  return undefined
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
