import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './digest.ts'

/** What a command writes: two files of bounded size, the newer and the one before it. */
export const OUTPUT = 'output.log'
export const OUTPUT_OLDER = 'output.log.1'

/** Harmless as the name of a folder. Elsewhere than on Linux, `A` and `a` may be the same name. */
const HARMLESS = new RegExp(
  '^[a-z0-9_-][a-z0-9._-]{0,99}$',
  process.platform === 'linux' ? 'i' : '',
)

/** `runs/<run id>`; an id that could mean another place is named by its hash. */
export function runFolder(stateFolder: string, runId: string): string {
  const name = HARMLESS.test(runId) ? runId : `sha256-${sha256(runId)}`
  return join(stateFolder, 'runs', name)
}

/** A piece of what a run wrote. */
export interface RunOutput {
  text: string
  /** Where the next piece begins: the file by its number on disk, and an offset in it. */
  next: string
  /** Whether something between the piece before and this one is gone. */
  skipped: boolean
}

/** Of a run, behind a place, at most so many bytes. */
export type ReadOutput = (
  runId: string,
  after: string | undefined,
  bytes: number,
) => RunOutput | undefined

/**
 * At most `bytes` of what a run wrote: behind `after`, or without one the last of it. Two files
 * take turns: a reader goes on in the older one if its place was put aside meanwhile.
 */
export function readOutput(
  stateFolder: string,
  runId: string,
  after: string | undefined,
  bytes: number,
): RunOutput | undefined {
  const folder = runFolder(stateFolder, runId)
  const files = [OUTPUT_OLDER, OUTPUT].flatMap((name) => openedAt(join(folder, name)))
  try {
    const newest = files.at(-1)
    if (!newest) return undefined
    if (after === undefined) return lastOf(newest, bytes)
    const [inode, offset] = after.split('-').map(Number)
    const at = files.findIndex((file) => file.inode === inode)
    const file = files[Math.max(at, 0)]!
    const from = at === -1 ? 0 : Math.min(offset!, file.size)
    const { text, end } = piece(file, from, bytes)
    const following = end >= file.size ? files[Math.max(at, 0) + 1] : undefined
    const next = following ? `${following.inode}-0` : `${file.inode}-${end}`
    return { text, next, skipped: at === -1 }
  } finally {
    for (const { fd } of files) closeSync(fd)
  }
}

interface Opened {
  fd: number
  inode: number
  size: number
}

function openedAt(path: string): Opened[] {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    const { ino, size } = fstatSync(fd)
    return [{ fd, inode: ino, size }]
  } catch {
    return []
  }
}

/** The end of a file, from the beginning of a line on where that is not too far. */
function lastOf(file: Opened, bytes: number): RunOutput {
  const from = Math.max(0, file.size - bytes)
  const { text, end } = piece(file, from, bytes)
  const line = from === 0 ? 0 : text.indexOf('\n') + 1
  return { text: text.slice(line), next: `${file.inode}-${end}`, skipped: from > 0 }
}

/** Never ends within a character: what is left of it comes with the next piece. */
function piece({ fd, size }: Opened, from: number, bytes: number): { text: string; end: number } {
  const buffer = Buffer.alloc(Math.max(0, Math.min(bytes, size - from)))
  const read = readSync(fd, buffer, 0, buffer.length, from)
  const whole = from + read < size ? wholeCharacters(buffer, read) : read
  return { text: buffer.toString('utf8', 0, whole), end: from + whole }
}

function wholeCharacters(buffer: Buffer, read: number): number {
  for (let at = read - 1; at >= Math.max(0, read - 4); at -= 1) {
    const byte = buffer[at]!
    if (byte < 0x80) return at + 1
    if (byte >= 0xc0) return at
  }
  return read
}
