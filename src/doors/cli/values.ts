import { isUtf8 } from 'node:buffer'
import { readSync } from 'node:fs'
import { Refusal } from '../../core/refusal.ts'
import { systemCode } from '../../machine/errors.ts'
import { processRef } from '../../machine/process.ts'
import { inputFile } from '../io.ts'

const UNITS: Record<string, number> = { '': 1, ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }

/** `90`, `30s`, `5m`, `2h` → seconds. */
export function durationOf(text: string, flag: string): number {
  const [, number, unit = ''] = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim()) ?? []
  if (number !== undefined) return Number(number) * UNITS[unit]!
  throw new Refusal('invalid', `${flag} is not a duration: ${text}`, {
    next: 'Give seconds or a unit: 90, 30s, 5m, 2h.',
  })
}

function numberOf(text: string, flag: string, or = ''): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value)) return value
  throw new Refusal('invalid', `${flag} is not a number: ${text}`, {
    next: `Give a number: ${flag} 5${or}`,
  })
}

function jsonOf(text: string, flag: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal('invalid', `${flag} is not JSON: ${(error as Error).message}`, {
      next: `Quote it for the shell: ${flag} '{"key": "value"}'`,
    })
  }
}

function processOf(text: string, flag: string) {
  const pid = numberOf(text, flag)
  const ref = Number.isSafeInteger(pid) && pid > 0 ? processRef(pid) : undefined
  if (ref) return ref
  throw new Refusal('invalid', `No process with pid ${text} runs here`, {
    next: 'Name a living process of this machine, e.g. --pid $$ for this shell.',
  })
}

/** A flag's text as the value its placeholder promises: `<duration>`, `<n>`, `<json>`… */
export function valueOf(text: unknown, flag: string): unknown {
  if (typeof text !== 'string') return text
  const name = flag.split(' ')[0]!
  if (flag.includes('<duration>')) return durationOf(text, name)
  if (flag.includes('<n>')) return numberOf(text, name)
  if (flag.includes('<n|null>')) return text === 'null' ? null : numberOf(text, name, ', or null')
  if (flag.includes('<json>')) return jsonOf(text, name)
  if (flag.includes('<pid>')) return processOf(text, name)
  if (flag.includes('<yes|no>')) return yesOrNo(text, name)
  return text === '-' ? readStdin() : text
}

function yesOrNo(text: string, flag: string): boolean {
  if (text === 'yes' || text === 'no') return text === 'yes'
  throw new Refusal('invalid', `${flag} is not yes or no: ${text}`, { next: `${flag} no` })
}

/** More than any field may have; what never ends must not be read for ever. */
const STDIN_MAX = 64 * 1024 * 1024

/** Bytes that are no text would become other ones on the way, without a word. */
function readStdin(): string {
  const bytes = stdinBytes()
  if (bytes.length === 0) {
    throw new Refusal('invalid', 'Standard input is empty', {
      next: 'Pipe a text into it, or give the text itself; for none at all: ""',
    })
  }
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new Refusal('invalid', 'Standard input is not text (UTF-8)', {
    next: 'Encode it first, for example with base64.',
  })
}

function stdinBytes(): Buffer {
  const chunks: Buffer[] = []
  for (let size = 0; size <= STDIN_MAX;) {
    const chunk = Buffer.alloc(64 * 1024)
    const length = readChunk(chunk)
    if (length === 0) return Buffer.concat(chunks)
    chunks.push(chunk.subarray(0, length))
    size += length
  }
  throw new Refusal('too_large', `Standard input is longer than ${STDIN_MAX} bytes`, {
    next: 'Give a shorter text, or a path to where it is.',
  })
}

/** A pipe that nobody has written to yet may say so instead of waiting; then we wait. */
function readChunk(chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(inputFile(), chunk)
    } catch (error) {
      const code = systemCode(error)
      if (code === 'EOF' || code === 'EBADF') return 0
      if (code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}
