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

/** `process.stdin` would do the same, and costs a millisecond more. */
function readPipe(patience_ms: number, max: number): Promise<string | undefined> {
  const { Socket } = process.getBuiltinModule('node:net')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const pipe = new Socket({ fd: 0, readable: true, writable: false })
    const end = () => {
      clearTimeout(late)
      pipe.destroy()
      resolve(size > max ? undefined : Buffer.concat(chunks).toString('utf8'))
    }
    const late = setTimeout(end, patience_ms)
    pipe.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > max) end()
      else chunks.push(chunk)
    })
    pipe.on('end', end)
    pipe.on('error', end)
  })
}
