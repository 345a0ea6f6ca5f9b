import { fstatSync, readFileSync } from 'node:fs'

/** A whole file may be in there, as the text of an edit. */
const INPUT_BYTES_MAX = 32 * 1024 * 1024

/**
 * What stands on standard input, up to its end, `max` bytes or `patience_ms`. Undefined when it is
 * longer than that. A terminal has nothing to say.
 */
export function readInput(patience_ms: number, max = INPUT_BYTES_MAX): Promise<string | undefined> {
  try {
    const stat = fstatSync(0)
    if (stat.isFile()) return Promise.resolve(stat.size > max ? undefined : readFileSync(0, 'utf8'))
    if (stat.isCharacterDevice()) return Promise.resolve('')
  } catch {
    return Promise.resolve('')
  }
  return readPipe(patience_ms, max)
}

const CHUNK_BYTES = 64 * 1024

/**
 * `process.stdin` would do the same, and costs a millisecond more. Nor is the pipe closed: Node
 * would make `process.stderr` for that, and the caller ends the process anyway.
 */
function readPipe(patience_ms: number, max: number): Promise<string | undefined> {
  const { Socket } = process.getBuiltinModule('node:net')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const end = () => {
      clearTimeout(late)
      resolve(size > max ? undefined : Buffer.concat(chunks).toString('utf8'))
    }
    const callback = (length: number, buffer: Uint8Array) => {
      size += length
      if (size <= max) chunks.push(Buffer.from(buffer.subarray(0, length)))
      const isOver = size > max || (size < CHUNK_BYTES && isWhole(Buffer.concat(chunks)))
      if (isOver) end()
      return !isOver
    }
    const onread = { buffer: Buffer.allocUnsafe(CHUNK_BYTES), callback }
    const options = { fd: 0, readable: true, writable: false, onread }
    const pipe = new Socket(options)
    const late = setTimeout(() => {
      pipe.pause()
      end()
    }, patience_ms)
    pipe.on('end', end)
    pipe.on('error', end)
  })
}

/** A JSON object that is whole: agents write one, and its end says nothing more. */
function isWhole(bytes: Buffer): boolean {
  const text = bytes.toString('utf8').trimEnd()
  if (!text.startsWith('{') || !text.endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
