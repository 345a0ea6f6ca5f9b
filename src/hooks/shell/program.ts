import type { Argument, Discard, Effects, Invocation, ShellPlace } from './effects.ts'
import {
  addRemoved,
  addTouched,
  addWrites,
  addWritten,
  among,
  has,
  type Kinds,
  pathOf,
  type Read,
  readOptions,
} from './options.ts'

/** A command with its words told apart by the options of its program. */
export type ReadCall = Invocation & Read

/** Adds what a command does to its effects. */
export type Does = (call: ReadCall, effects: Effects) => void

/** Some of its words: from which, and up to which. */
type Words = readonly [from: number, to?: number]
export const ALL: Words = [0]

/**
 * What is known of a program, or of a verb of git: how its words are read, and what becomes of the
 * files among them. Lists of options have blanks between them.
 */
export interface Program extends Kinds {
  /** It does nothing without one of these, or with one of those. */
  if?: string
  unless?: string
  writes?: Words
  removes?: Words
  /** Changes modes, owners and folders, and nothing in a file; `R` goes down into folders. */
  touches?: Words
  /** Writes only files that are there: of a folder nobody can say which, the second net looks. */
  fixes?: boolean
  /** Options whose value is a file that it writes. */
  outputs?: string
  /** Options by which it is given its script; without one that is its first word. */
  script?: string
  /** A file that such a script writes. */
  named?: RegExp
  /** Unpacks an archive: the option that says where, and the words that are members. */
  unpacks?: { into: string; members: Words }
  discards?: Discard['what']
  /** It runs the command that stands behind so many words; of some verbs only. */
  runs?: number
  verbs?: string
  /** An option with a text that a shell takes apart again, and one with another folder. */
  text?: string
  folder?: string
  /** What a row cannot say. */
  does?: Does
}

export function applyProgram(program: Program, call: Invocation, effects: Effects): void {
  const read = readOptions(call.args, program)
  const { place } = call
  const { options } = read
  const words = read.operands.filter(({ text }) => text !== '')
  const given = among(options, program.script ?? '')
  const isGiven = program.script === undefined || given.length > 0
  if (program.named) {
    const scripts = isGiven ? given.map(({ value }) => value) : [words[0]?.text]
    for (const text of scripts) {
      const found = [...(text ?? '').matchAll(program.named)]
      for (const [, file] of found) addWritten(effects, place, file)
    }
  }
  if (program.if !== undefined && !has(options, program.if)) return
  if (has(options, program.unless ?? '')) return
  const operands = (isGiven ? words : words.slice(1)).filter(
    (each) => !program.fixes || isFile(each, place),
  )
  const some = (those: Words | undefined) => (those ? operands.slice(...those) : [])
  for (const { value } of among(options, program.outputs ?? '')) addWritten(effects, place, value)
  addWrites(effects, place, some(program.writes))
  addRemoved(effects, place, some(program.removes))
  addTouched(effects, place, some(program.touches), has(options, 'R recursive'))
  if (program.unpacks) {
    const { into, members } = program.unpacks
    addUnpacked(effects, place, among(options, into).at(-1)?.value, some(members))
  }
  if (program.discards) discard(effects, place, program.discards)
  program.does?.({ ...call, ...read }, effects)
}

function isFile({ text, glob }: Argument, place: ShellPlace): boolean {
  const path = pathOf(place, text)
  return path !== undefined && (glob || place.isThere(path)) && !place.isFolder(path)
}

/**
 * What comes out of an archive is not known by its text: unless members are named, anything in the
 * folder where it is unpacked may be written over.
 */
export function addUnpacked(
  effects: Effects,
  place: ShellPlace,
  into: string | undefined,
  members: readonly Argument[],
): void {
  const cwd = into === undefined ? place.cwd : pathOf(place, into)
  if (cwd === undefined) return
  if (members.length > 0) addWrites(effects, { ...place, cwd }, members)
  else effects.writes.push({ path: cwd, kind: 'tree' })
}

export function discard(
  effects: Effects,
  { cwd }: ShellPlace,
  what: Discard['what'],
  more: Pick<Discard, 'matching' | 'ignored'> = {},
): void {
  if (cwd !== undefined) effects.discards.push({ dir: cwd, what, ...more })
}

export function addPatch(
  effects: Effects,
  patch: { dir: string; strip: number; format: 'diff' | 'envelope' },
  file: string | undefined,
  text: string | undefined,
): void {
  if (text !== undefined) effects.patches.push({ ...patch, text })
  else if (file !== undefined) effects.patches.push({ ...patch, file })
}
