/**
 * What text must be for every store to keep it and give it back as it was: whole characters, and no
 * NUL. Half of a surrogate pair has no encoding, so a store would keep another character in its
 * place; PostgreSQL refuses NUL.
 */
function faultIn(text: string): string | undefined {
  if (!text.isWellFormed()) return 'must not contain half of a character'
  return text.includes('\0') ? 'must not contain NUL characters' : undefined
}

interface Fault {
  /** Where: `metadata.name`. A key that is at fault itself is not spelled out. */
  path: string
  /** What is wrong with it, to follow the path in a sentence. */
  message: string
}

/** The first text that no store could keep, keys and all levels included. */
export function textFault(value: unknown): Fault | undefined {
  // Not recursive: somebody may send more levels than there is stack.
  const left: [string, unknown][] = [['', value]]
  for (let next = left.pop(); next; next = left.pop()) {
    const [path, each] = next
    if (typeof each === 'string') {
      const message = faultIn(each)
      if (message) return { path, message }
    } else if (typeof each === 'object' && each !== null) {
      for (const key of Object.keys(each)) {
        const message = faultIn(key)
        if (message) return { path, message: `has a field whose name ${message}` }
        const inner = (each as Record<string, unknown>)[key]
        if (inner === null || (typeof inner !== 'string' && typeof inner !== 'object')) continue
        left.push([path === '' ? key : `${path}.${key}`, inner])
      }
    }
  }
  return undefined
}

/** The same text as a store keeps it: U+FFFD in place of what has no encoding. */
export const keepable = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/** About how many bytes a value takes, by the text in it: quick, and near enough for a bound. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let size = 0
  // Not by entries: they would be made each time.
  for (const key in value) size += 8 + key.length + sizeOf(value[key as keyof typeof value])
  return size
}
