import { resolve } from 'node:path'
import type { Argument, Effects, ShellPlace, Target } from './effects.ts'

export interface Option {
  /** Without dashes: `i`, `in-place`. */
  flag: string
  /** Undefined when it has none, or none that is known. */
  value: string | undefined
}

/** Which options a program has, as far as that tells words apart. */
export interface Kinds {
  /** Short options that take a value. */
  valued?: string
  /** Long options that take the next word as their value when it is not attached. */
  long?: string
  /** Short options that may have a value, always attached: `-i.bak`. */
  attached?: string
  /** Short options that may have a number, always attached: `-0777`; others may follow. */
  numbered?: string
}

export interface Read {
  options: Option[]
  operands: Argument[]
  /** What stands behind `--`. */
  afterDashes: Argument[] | undefined
}

/** `A=b`, as `env` takes it. */
export const ASSIGNED = /^([A-Za-z_]\w*)=(.*)$/s

/**
 * Splits arguments as getopt does. After `--`, and after a lone `-`, there are no options; nor, of
 * a program that runs the command in its words, behind the first `until` of them.
 */
export function readOptions(
  args: readonly Argument[],
  { valued = '', long = '', attached = '', numbered = '' }: Kinds = {},
  until = Infinity,
): Read {
  const options: Option[] = []
  const operands: Argument[] = []
  let words = 0
  for (let i = 0; i < args.length; i += 1) {
    const { text } = args[i]!
    if (text === '--') {
      const rest = args.slice(i + 1)
      return { options, operands: [...operands, ...rest], afterDashes: rest }
    }
    if (text === undefined || text === '-' || !text.startsWith('-')) {
      operands.push(args[i]!)
      if (!ASSIGNED.test(text ?? '')) words += 1
      if (words <= until) continue
      return { options, operands: [...operands, ...args.slice(i + 1)], afterDashes: undefined }
    }
    if (text.startsWith('--')) {
      const [, flag, value] = /^--([^=]*)(?:=(.*))?$/s.exec(text)!
      const takes = value === undefined && long.split(' ').includes(flag!)
      options.push({ flag: flag!, value: takes ? args[(i += 1)]?.text : value })
    } else i += readShort(text, args[i + 1], { valued, attached, numbered }, options)
  }
  return { options, operands, afterDashes: undefined }
}

/** `-abc value`; how many further words it took. */
function readShort(
  text: string,
  next: Argument | undefined,
  { valued, attached, numbered }: Required<Omit<Kinds, 'long'>>,
  options: Option[],
): number {
  for (let at = 1; at < text.length; at += 1) {
    const flag = text[at]!
    const rest = text.slice(at + 1)
    if (valued.includes(flag)) {
      options.push({ flag, value: rest === '' ? next?.text : rest })
      return rest === '' ? 1 : 0
    }
    options.push({ flag, value: attached.includes(flag) ? rest : undefined })
    if (attached.includes(flag)) return 0
    if (numbered.includes(flag)) at += /^(?:x[\da-f]+|\d*)/i.exec(rest)![0].length
  }
  return 0
}

/** Those of `options` that `flags` names, with blanks between them: `i in-place`. */
export const among = (options: readonly Option[], flags: string) =>
  options.filter(({ flag }) => flags.split(' ').includes(flag))

export const has = (options: readonly Option[], flags: string) => among(options, flags).length > 0

export const valueOf = (options: readonly Option[], flags: string) =>
  among(options, flags).at(-1)?.value

/** Undefined where the folder is unknown and the path is not a full one. */
export const pathOf = ({ cwd }: ShellPlace, text: string | undefined) =>
  text?.startsWith('/')
    ? resolve(text)
    : cwd === undefined || text === undefined
      ? undefined
      : resolve(cwd, text)

/** The files that operands name. A folder counts with all that is in it. */
export function targetsOf(place: ShellPlace, args: readonly Argument[]): Target[] {
  return args.flatMap(({ text, glob, maybe = [] }): Target[] => {
    if (text === undefined) {
      // Of a name that only a run would tell: the files that it may be.
      const paths = maybe.flatMap((each) => (each === '' ? [] : (pathOf(place, each) ?? [])))
      const files = paths.filter((path) => place.isThere(path) && !place.isFolder(path))
      return files.map((path) => ({ path, kind: 'file' }))
    }
    const path = text === '' ? undefined : pathOf(place, text)
    if (path === undefined) return []
    return [{ path, kind: glob ? 'glob' : place.isFolder(path) ? 'tree' : 'file' }]
  })
}

export const addWrites = (effects: Effects, place: ShellPlace, args: readonly Argument[]) =>
  void effects.writes.push(...targetsOf(place, args))

/** A file that is written and named by a text; `-` is standard output. */
export const addWritten = (effects: Effects, place: ShellPlace, text: string | undefined) =>
  text !== '-' && addWrites(effects, place, [{ text, glob: false }])

/** What is changed other than in its content; with all that is in it, where it is `deep`. */
export function addTouched(
  effects: Effects,
  place: ShellPlace,
  args: readonly Argument[],
  deep = false,
): void {
  for (const each of targetsOf(place, args)) {
    effects.touches.push({ ...each, ...(deep && { removes: true }) })
  }
}

export function addRemoved(effects: Effects, place: ShellPlace, args: readonly Argument[]): void {
  for (const each of targetsOf(place, args)) effects.writes.push({ ...each, removes: true })
}
