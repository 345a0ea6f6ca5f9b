import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './digest.ts'

/** What a command writes: two files of bounded size, the newer and the one before it. */
export const OUTPUT = 'output.log'
export const OUTPUT_OLDER = 'output.log.1'
/** It is there when a file before these two was thrown away. */
export const OUTPUT_CUT = 'output.cut'

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

export const hasRuns = (stateFolder: string) => existsSync(join(stateFolder, 'runs'))

/** A piece of what a run wrote. */
export interface RunOutput {
  text: string
  /** Where this piece begins, and where the next one does: see `place`. */
  begin: string
  next: string
  /** Whether something between the piece before and this one is gone. */
  skipped: boolean
  /** Whether nothing is kept before it. */
  is_first: boolean
  /** Bytes that are kept in all. */
  bytes_total: number
}

/** Which piece: behind a place, before a place, the first, or (none of these) the last. */
export interface WhichOutput {
  after?: string | undefined
  before?: string | undefined
  from?: 'first' | 'last' | undefined
}

/** Of a run, such a piece of at most so many bytes. */
export type ReadOutput = (runId: string, which: WhichOutput, bytes: number) => RunOutput | undefined

/**
 * At most `bytes` of what a run wrote. Two files take turns: a reader goes on in the older one if
 * its place was put aside meanwhile.
 */
export function readOutput(
  stateFolder: string,
  runId: string,
  { after, before, from }: WhichOutput,
  bytes: number,
): RunOutput | undefined {
  const folder = runFolder(stateFolder, runId)
  const files = [OUTPUT_OLDER, OUTPUT].flatMap((name) => openedAt(join(folder, name)))
  try {
    if (files.length === 0) return undefined
    if (after !== undefined) return behind(files, after, bytes)
    if (before !== undefined) return ahead(files, before, bytes)
    if (from === 'first') {
      return { ...pieceOf(files, 0, 0, bytes), skipped: existsSync(join(folder, OUTPUT_CUT)) }
    }
    const last = files.length - 1
    return upTo(files, last, files[last]!.size, bytes)
  } finally {
    for (const { fd } of files) closeSync(fd)
  }
}

/** A place: the file by its number on disk, and an offset in it. */
const place = ({ inode }: Opened, offset: number) => `${inode}-${offset}`

function behind(files: Opened[], after: string, bytes: number): RunOutput {
  const [inode, offset] = after.split('-').map(Number)
  const at = files.findIndex((file) => file.inode === inode)
  const file = Math.max(at, 0)
  const from = at === -1 ? 0 : Math.min(offset!, files[file]!.size)
  return { ...pieceOf(files, file, from, bytes), skipped: at === -1 }
}

/** What comes before a place; nothing, where that is gone. */
function ahead(files: Opened[], before: string, bytes: number): RunOutput {
  const [inode, offset = 0] = before.split('-').map(Number)
  const at = files.findIndex((file) => file.inode === inode)
  if (at === -1) return { ...pieceOf(files, 0, 0, 0), skipped: true }
  if (offset > 0 || at === 0) return upTo(files, at, Math.min(offset, files[at]!.size), bytes)
  return upTo(files, at - 1, files[at - 1]!.size, bytes)
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

/** What ends at an offset, from the beginning of a line on where that is not too far. */
function upTo(files: Opened[], at: number, end: number, bytes: number): RunOutput {
  const from = Math.max(0, end - bytes)
  // By bytes: what begins within a character has no text to count in.
  const found = from === 0 ? 0 : bytesIn(files[at]!, from, end - from).indexOf('\n') + 1
  const line = from + found === end ? 0 : found
  return { ...pieceOf(files, at, from + line, end - from - line), skipped: from > 0 }
}

function pieceOf(files: Opened[], at: number, from: number, bytes: number): RunOutput {
  const file = files[at]!
  const found = bytesIn(file, from, bytes)
  // Never ends within a character: what is left of it comes with the next piece.
  const whole = from + found.length < file.size ? wholeCharacters(found) : found.length
  const end = from + whole
  const following = end >= file.size ? files[at + 1] : undefined
  return {
    text: found.toString('utf8', 0, whole),
    begin: place(file, from),
    next: following ? place(following, 0) : place(file, end),
    skipped: false,
    is_first: at === 0 && from === 0,
    bytes_total: files.reduce((sum, { size }) => sum + size, 0),
  }
}

function bytesIn({ fd, size }: Opened, from: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, Math.min(bytes, size - from)))
  return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, from))
}

function wholeCharacters(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= Math.max(0, bytes.length - 4); at -= 1) {
    const byte = bytes[at]!
    if (byte < 0x80) return at + 1
    if (byte >= 0xc0) return at
  }
  return bytes.length
}
