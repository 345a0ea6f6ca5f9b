import { basename, dirname, join, resolve } from 'node:path'
import type { Argument, Effects, Invocation } from './effects.ts'
import { addPatch, addUnpacked, type Does, type ReadCall } from './program.ts'
import {
  addRemoved,
  addWrites,
  addWritten,
  among,
  has,
  pathOf,
  readOptions,
  targetsOf,
  valueOf,
} from './options.ts'

/* What programs write that no row of programs.ts can say. */

const REMOTE = /^[^/]+:/

/** The last word is where it goes; a folder takes each by its name. A move empties the source. */
export const copy: Does = (call, effects) => {
  const { name, options, operands, place } = call
  if (name === 'install' && has(options, 'd directory')) return
  // One of another machine is not ours.
  if (name === 'scp' && REMOTE.test(operands.at(-1)?.text ?? ':')) return
  const into = name === 'scp' ? undefined : valueOf(options, 't target-directory')
  const sources = into === undefined ? operands.slice(0, -1) : operands
  const to = into === undefined ? operands.at(-1) : { text: into, glob: false }
  if (name === 'mv') addRemoved(effects, place, sources)
  if (has(options, 'l link s symbolic-link')) addLinked(call, effects, sources)
  if (to?.text === undefined) return addWrites(effects, place, to ? [to] : [])
  const target = pathOf(place, to.text)
  if (target === undefined) return
  const single = has(options, 'T no-target-directory')
  const isFolder = !single && (to.text.endsWith('/') || place.isFolder(target))
  // Of a name that is not known, all that it may be.
  const found = targetsOf(place, sources)
  if (isFolder || sources.length > 1) {
    for (const { path, kind } of found) {
      effects.writes.push({ path: join(target, basename(path)), kind })
    }
  } else {
    const trees = found.some(({ kind }) => kind === 'tree')
    effects.writes.push({ path: target, kind: to.glob ? 'glob' : trees ? 'tree' : 'file' })
  }
}

export const link: Does = (call, effects) => {
  const { options, operands, place } = call
  const into = valueOf(options, 't target-directory')
  const [first, second] = operands
  const sources = into === undefined && second ? operands.slice(0, -1) : operands
  const to = into ?? (second ? operands.at(-1)!.text : basename(first?.text ?? '.'))
  const target = pathOf(place, to)
  addLinked(call, effects, sources, target)
  if (target === undefined) return
  const isInto = into !== undefined || sources.length > 1 || (second && place.isFolder(target))
  for (const { text } of sources) {
    if (text === undefined) continue
    effects.writes.push({ path: isInto ? join(target, basename(text)) : target, kind: 'file' })
  }
}

/** What a symbolic link says begins where the link is; that of others, where the command stands. */
function addLinked(
  { place }: Invocation,
  effects: Effects,
  sources: Argument[],
  made?: string,
): void {
  for (const { text } of sources) {
    const path = pathOf(place, text)
    const ways = path === undefined ? [] : [path]
    if (text !== undefined && made !== undefined) {
      ways.push(resolve(dirname(made), text), resolve(made, text))
    }
    for (const each of ways) effects.touches.push({ path: each, kind: 'file' })
  }
}

/** `gawk -i inplace script files`. */
export const editInPlace: Does = ({ options, operands, place }, effects) => {
  if (valueOf(options, 'i include') !== 'inplace') return
  addWrites(effects, place, has(options, 'f file e') ? operands : operands.slice(1))
}

export const writeDd: Does = ({ args, place }, effects) => {
  for (const { text } of args) {
    if (text?.startsWith('of=')) addWritten(effects, place, text.slice(3))
  }
}

/** The last word is a folder to be filled, or a file; one on another machine is not ours. */
export const synchronize: Does = ({ options, operands, place }, effects) => {
  const { text } = operands.at(-1) ?? {}
  if (operands.length < 2 || !text || REMOTE.test(text)) return
  const target = pathOf(place, text)
  if (target === undefined) return
  const isFolder = has(options, 'a r archive recursive') || text.endsWith('/')
  const kind = isFolder || place.isFolder(target) ? 'tree' : 'file'
  const removes = options.some(({ flag }) => flag.startsWith('del'))
  effects.writes.push({ path: target, kind, removes })
}

/** `curl -o file`, and `-O`, which takes the name from the address. */
export const download: Does = ({ options, operands, place }, effects) => {
  const into = valueOf(options, 'output-dir')
  const at = into === undefined ? place : { ...place, cwd: pathOf(place, into) }
  for (const { value } of among(options, 'o output')) addWritten(effects, at, value)
  if (!has(options, 'O remote-name remote-name-all')) return
  for (const { text } of operands) addWritten(effects, at, text && basename(text.split('?')[0]!))
}

export const patch: Does = ({ options, operands, place, input }, effects) => {
  const at = valueOf(options, 'd directory')
  const dir = at === undefined ? place.cwd : pathOf(place, at)
  const [file] = operands
  if (file) return addWrites(effects, place, [file])
  if (dir === undefined) return
  const named = valueOf(options, 'i input')
  const source = named === undefined ? input.file : pathOf(place, named)
  const strip = Number(valueOf(options, 'p strip') ?? Number.POSITIVE_INFINITY)
  addPatch(effects, { dir, strip, format: 'diff' }, source, input.text)
}

export const applyEnvelope: Does = ({ args, place, input }, effects) => {
  if (place.cwd === undefined) return
  const text = args[0]?.text ?? input.text
  addPatch(effects, { dir: place.cwd, strip: 0, format: 'envelope' }, input.file, text)
}

/**
 * `tar xzf a.tgz`, `tar -x -f a.tar -C dir`, `tar --extract`; the first word may lack its dash. One
 * that packs writes the archive, and may take away what it packed.
 */
export const tar: Does = ({ args, place }, effects) => {
  const [first, ...rest] = args
  const isBundled = first?.text !== undefined && !first.text.startsWith('-')
  const all = isBundled ? [{ ...first, text: `-${first.text}` }, ...rest] : args
  const { options, operands } = readOptions(all, {
    valued: 'fCTXbgKNVI',
    long: 'file directory exclude strip-components transform files-from',
  })
  if (has(options, 'c create r append u update A')) {
    addWritten(effects, place, valueOf(options, 'f file'))
    if (has(options, 'remove-files')) addRemoved(effects, place, operands)
  }
  if (!has(options, 'x extract get')) return
  if (has(options, 'O to-stdout k keep-old-files skip-old-files')) return
  addUnpacked(effects, place, valueOf(options, 'C directory'), operands)
}

/** `7z x a.7z -odir member…` */
export const sevenZip: Does = ({ args, options, operands, place }, effects) => {
  const [verb, , ...members] = operands
  if (!/^[xe]$/.test(verb?.text ?? '') || args.some(({ text }) => text === '-so')) return
  addUnpacked(effects, place, valueOf(options, 'o'), members)
}

export const ar: Does = ({ args, place }, effects) => {
  const [mode, archive, ...members] = args
  if (mode?.text?.includes('x')) addUnpacked(effects, place, undefined, members)
  else if (/[qrd]/.test(mode?.text ?? '') && archive) addWrites(effects, place, [archive])
}

export const zip: Does = ({ options, operands, place }, effects) => {
  if (has(options, 'm move')) addRemoved(effects, place, operands.slice(1))
}

/** The file is replaced by one with the ending, or without it. */
export function press(ending: string): Does {
  return ({ name, options, operands, place }, effects) => {
    const out = valueOf(options, 'o')
    if (out !== undefined) return void addWritten(effects, place, out)
    // Of lz4 the second word is the file that it makes.
    if (ending === '.lz4' && operands.length > 1) {
      return addWrites(effects, place, operands.slice(1, 2))
    }
    const opens = /^[gb]?un/.test(name) || has(options, 'd decompress uncompress')
    if (!has(options, 'k keep')) addRemoved(effects, place, operands)
    for (const { text, glob } of operands) {
      const isPressed = text?.endsWith(ending)
      if (text === undefined || (opens && !isPressed)) continue
      const made = opens ? text.slice(0, -ending.length) : `${text}${ending}`
      addWrites(effects, place, [{ text: made, glob }])
    }
  }
}

/**
 * A command of PowerShell. Its quotes, pipes and redirections are near enough to those of a shell
 * to be read like one; its variables and expressions are not, and what they name is left to the
 * second net.
 */
export function cmdlet(what: { writes?: 'from' | 'to'; removes?: 'from' }): Does {
  return ({ args, place }, effects) => {
    const files = filesOfCmdlet(args)
    if (what.removes) addRemoved(effects, place, files[what.removes])
    if (what.writes) addWrites(effects, place, files[what.writes])
  }
}

const FROM = /^-(?:literal|file)?path$/i
const TO = /^-(?:destination|newname)$/i
/** Flags without a value. */
const BARE = /^-(?:force|recurse|append|nonewline|confirm|whatif|passthru|noclobber)$/i

/** The words that name files: by their flag, else by their place. */
function filesOfCmdlet(args: ReadCall['args']): Record<'from' | 'to', Argument[]> {
  const plain: Argument[] = []
  const found: Record<'from' | 'to', Argument[]> = { from: [], to: [] }
  for (let i = 0; i < args.length; i += 1) {
    const { text = '' } = args[i]!
    if (FROM.test(text)) found.from = args.slice((i += 1), i + 1)
    else if (TO.test(text)) found.to = args.slice((i += 1), i + 1)
    else if (!text.startsWith('-')) plain.push(args[i]!)
    else if (!BARE.test(text)) i += 1
  }
  if (found.from.length === 0) found.from = plain.splice(0, 1)
  if (found.to.length === 0) found.to = plain.splice(0, 1)
  return found
}
