import { sha256 } from '../../../machine/digest.ts'

/**
 * Names of files for scopes and keys: `project/web/build.md`. What is not a plain letter, digit,
 * dash, underscore or inner dot is written as %XX, so no key leaves its folder, hides, or means
 * something else on another system; what is too long ends in `~` and a hash.
 */
const PLAIN = /^[A-Za-z0-9_-]$/
const NAME_MAX = 100
const HASH = 12
/** Names that some systems take for devices. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i
/** No part begins with a dot: none leaves its folder or hides. */
const PATH = /^(?:global|(?:project|user|task)\/[^/.][^/]*)\/[^/.][^/]*\.md$/

function escaped(text: string): string {
  const letters = Array.from(text)
  const name = letters
    .map((letter, i) => {
      const isInnerDot = letter === '.' && i > 0 && i < letters.length - 1
      return PLAIN.test(letter) || isInnerDot ? letter : percent(letter)
    })
    .join('')
  const safe = DEVICE.test(name) ? percent(name[0]!) + name.slice(1) : name
  return safe.length <= NAME_MAX ? safe : `${cut(safe)}~${sha256(text).slice(0, HASH)}`
}

const percent = (text: string) =>
  Array.from(
    Buffer.from(text),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('')

/** Not through the middle of a %XX. */
const cut = (name: string) => name.slice(0, NAME_MAX - HASH - 1).replace(/%.?$/, '')

/** The folder of a scope: `project:web` → `project/web`. */
function folderOf(scope: string): string {
  const at = scope.indexOf(':')
  return at < 0 ? scope : `${scope.slice(0, at)}/${escaped(scope.slice(at + 1))}`
}

/** The file of a note; `taken` says which names are in use by others, whatever their case. */
export function pathOf(scope: string, key: string, taken: (path: string) => boolean): string {
  const folder = folderOf(scope)
  const path = `${folder}/${escaped(key)}.md`
  // A key may look like the name of a sibling's file.
  const isFree = !taken(path) && !CONFLICT.test(path)
  return isFree ? path : `${folder}/${cut(escaped(key))}~${sha256(key).slice(0, HASH)}.md`
}

const CONFLICT = /\.conflict-\d+\.md$/

/** The file of a version that disagrees with the note's own file. */
export const siblingPath = (path: string, version: number) =>
  path.replace(/\.md$/, `.conflict-${version}.md`)

/** Scope and key that a file stands for by its name; undefined where its name does not say. */
export function nameIn(path: string): { scope: string; key: string } | undefined {
  if (!PATH.test(path) || path.includes('~') || CONFLICT.test(path)) return undefined
  // Some systems take letters apart that were written in one: the key is that which was meant.
  const parts = path.normalize('NFC').slice(0, -'.md'.length).split('/')
  try {
    const [kind, ...rest] = parts.map((part) => decodeURIComponent(part))
    const key = rest.pop()!
    return { scope: rest.length > 0 ? `${kind}:${rest[0]}` : kind!, key }
  } catch {
    return undefined
  }
}

/** Whether a path is one that this module may have made: nothing else is touched. */
export const isOurs = (path: string) => PATH.test(path)
