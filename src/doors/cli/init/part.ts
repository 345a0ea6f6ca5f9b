import { Refusal } from '../../../core/refusal.ts'
import { hasBlock, type Marks, withBlock, withoutBlock } from './block.ts'
import { type FileState, MISSING } from './files.ts'

/** Our part of one file. Two functions say all: how it is put in, and how it is taken out. */
export interface InitPart {
  path: string
  why: string
  /** Not committed, so that every checkout has to be given its own. */
  isLocal: boolean
  /** Whether a link at this path is left as it is and replaced as a whole. */
  isLinkKept?: boolean
  /** The file with our part in it. Putting it in twice gives the same as once. */
  put(before: FileState): FileState
  /** The file without our part, whatever others have done around it. */
  take(now: FileState): FileState
}

interface TextPart {
  path: string
  why: string
  isLocal?: boolean
  put(before: string | undefined): string | undefined
  /** Undefined when nothing of others is left. */
  take(now: string): string | undefined
}

const PLAIN = 0o644

/** A part of a text file. The mode of a file that was there is kept. */
export function textPart({ isLocal = false, ...part }: TextPart): InitPart {
  return {
    path: part.path,
    why: part.why,
    isLocal,
    put: (before) => {
      const text = part.put(before.kind === 'file' ? textOf(part.path, before.bytes) : undefined)
      if (text === undefined) return before
      return fileOf(text, before.kind === 'file' ? before.mode : PLAIN & ~process.umask())
    },
    take: (now) => {
      if (now.kind !== 'file') return now
      const text = part.take(textOf(part.path, now.bytes))
      return text === undefined ? MISSING : fileOf(text, now.mode)
    },
  }
}

export function fileOf(text: string, mode: number): FileState {
  return { kind: 'file', bytes: Buffer.from(text), mode }
}

/** Refuses (`invalid`) bytes that would not survive being read as text. */
export function textOf(path: string, bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes)) return text
  throw new Refusal('invalid', `${path} is not UTF-8 text`, {
    next: 'Save it as UTF-8, then run leasehold init again. Nothing was written.',
  })
}

interface BlockPart extends Pick<TextPart, 'path' | 'why'> {
  body: string
  marks: Marks
  /** Whether others have written what our block would say; then it is left out. */
  isTheirs?: (others: string) => boolean
}

/** A block of lines between our marks. Lines of others around it stay as they are. */
export function blockPart({ path, why, body, marks, isTheirs }: BlockPart): InitPart {
  return textPart({
    path,
    why,
    put: (before) => {
      const isOurs = before !== undefined && hasBlock(before, marks, path)
      return !isOurs && isTheirs?.(before ?? '') ? before : withBlock(before, body, marks, path)
    },
    take: (now) => {
      const left = withoutBlock(now, marks, path)
      return left.trim() === '' ? undefined : left
    },
  })
}

/** A file that is ours as a whole, e.g. the skill. */
export function wholePart(path: string, why: string, text: string): InitPart {
  return textPart({ path, why, put: () => text, take: () => undefined })
}
