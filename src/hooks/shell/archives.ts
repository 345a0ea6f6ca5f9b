import type { Argument, Effects, Invocation, ShellPlace } from './effects.ts'
import { addRemoved, addWrites, has, pathOf, readOptions, valueOf, type Writer } from './options.ts'

/**
 * What comes out of an archive is not known by its text: unless members are named, anything in the
 * folder where it is unpacked may be written over.
 */
export const ARCHIVERS: Record<string, Writer> = {
  tar: unpackTar,
  bsdtar: unpackTar,
  unzip: ({ args, place }, effects) => {
    const { options, operands } = readOptions(args, { valued: 'dx' })
    if (has(options, 'l', 'p', 't', 'n', 'Z', 'z')) return
    addUnpacked(effects, place, valueOf(options, 'd'), operands.slice(1))
  },
  cpio: ({ args, place }, effects) => {
    const { options, operands } = readOptions(args, { valued: 'DFHIOCERM' })
    if (has(options, 'i', 'extract') && !has(options, 't', 'list')) {
      addUnpacked(effects, place, valueOf(options, 'D'), operands)
    }
  },
  gzip: press('.gz'),
  gunzip: press('.gz', true),
  bzip2: press('.bz2'),
  bunzip2: press('.bz2', true),
  xz: press('.xz'),
  unxz: press('.xz', true),
  zstd: press('.zst'),
  unzstd: press('.zst', true),
}

/** `tar xzf a.tgz`, `tar -x -f a.tar -C dir`, `tar --extract`; the first word may lack its dash. */
function unpackTar({ args, place }: Invocation, effects: Effects): void {
  const [first, ...rest] = args
  const bundled =
    first?.text && !first.text.startsWith('-') ? { ...first, text: `-${first.text}` } : first
  const { options, operands } = readOptions(bundled ? [bundled, ...rest] : args, {
    valued: 'fCTXbgKNVI',
    long: ['file', 'directory', 'exclude', 'strip-components', 'transform', 'files-from'],
  })
  if (!has(options, 'x', 'extract', 'get') || has(options, 'O', 'to-stdout', 'k')) return
  if (has(options, 'keep-old-files', 'skip-old-files')) return
  addUnpacked(effects, place, valueOf(options, 'C', 'directory'), operands)
}

function addUnpacked(
  effects: Effects,
  place: ShellPlace,
  into: string | undefined,
  members: Argument[],
): void {
  const cwd = into === undefined ? place.cwd : pathOf(place, into)
  if (cwd === undefined) return
  if (members.length > 0) addWrites(effects, { ...place, cwd }, members)
  else effects.writes.push({ path: cwd, kind: 'tree' })
}

/** The file is replaced by one with the ending, or without it. */
function press(ending: string, always = false): Writer {
  return ({ args, place }, effects) => {
    const { options, operands } = readOptions(args, { valued: 'SbTMo', long: ['suffix'] })
    if (has(options, 'c', 'stdout', 't', 'test', 'l', 'list')) return
    const opens = always || has(options, 'd', 'decompress', 'uncompress')
    const made = operands.flatMap(({ text, glob }): Argument[] => {
      if (text === undefined) return []
      const isPressed = text.endsWith(ending)
      if (opens) return isPressed ? [{ text: text.slice(0, -ending.length), glob }] : []
      return [{ text: `${text}${ending}`, glob }]
    })
    if (!has(options, 'k', 'keep')) addRemoved(effects, place, operands)
    addWrites(effects, place, made)
  }
}
