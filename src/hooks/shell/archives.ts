import type { Argument, Effects, Invocation, ShellPlace } from './effects.ts'
import { addRemoved, addWrites, has, pathOf, readOptions, valueOf, type Writer } from './options.ts'

/**
 * What comes out of an archive is not known by its text: unless members are named, anything in the
 * folder where it is unpacked may be written over.
 */
export const ARCHIVERS: Record<string, Writer> = {
  tar: useTar,
  bsdtar: useTar,
  gtar: useTar,
  jar: useTar,
  '7z': unpackSeven,
  '7za': unpackSeven,
  '7zr': unpackSeven,
  ar: ({ args, place }, effects) => {
    const [mode, archive, ...members] = args
    if (mode?.text?.includes('x')) addUnpacked(effects, place, undefined, members)
    else if (/[qrd]/.test(mode?.text ?? '') && archive) addWrites(effects, place, [archive])
  },
  zip: ({ args, place }, effects) => {
    const { options, operands } = readOptions(args, { valued: 'bnt' })
    addWrites(effects, place, operands.slice(0, 1))
    if (has(options, 'm', 'move')) addRemoved(effects, place, operands.slice(1))
  },
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
  pigz: press('.gz'),
  unpigz: press('.gz', true),
  compress: press('.Z'),
  uncompress: press('.Z', true),
  lzma: press('.lzma'),
  unlzma: press('.lzma', true),
  bzip2: press('.bz2'),
  bunzip2: press('.bz2', true),
  xz: press('.xz'),
  unxz: press('.xz', true),
  zstd: press('.zst'),
  unzstd: press('.zst', true),
  brotli: press('.br'),
  lzip: press('.lz'),
  lzop: press('.lzo'),
  // Its second word is the file that it makes.
  lz4: (call, effects) => {
    const { operands } = readOptions(call.args)
    if (operands.length < 2) press('.lz4')(call, effects)
    else addWrites(effects, call.place, operands.slice(1, 2))
  },
}

/**
 * `tar xzf a.tgz`, `tar -x -f a.tar -C dir`, `tar --extract`; the first word may lack its dash. One
 * that packs writes the archive, and may take away what it packed.
 */
function useTar({ args, place }: Invocation, effects: Effects): void {
  const [first, ...rest] = args
  const bundled =
    first?.text && !first.text.startsWith('-') ? { ...first, text: `-${first.text}` } : first
  const { options, operands } = readOptions(bundled ? [bundled, ...rest] : args, {
    valued: 'fCTXbgKNVI',
    long: ['file', 'directory', 'exclude', 'strip-components', 'transform', 'files-from'],
  })
  if (has(options, 'c', 'create', 'r', 'append', 'u', 'update', 'A')) {
    const text = valueOf(options, 'f', 'file')
    if (text !== undefined && text !== '-') addWrites(effects, place, [{ text, glob: false }])
    if (has(options, 'remove-files')) addRemoved(effects, place, operands)
  }
  if (!has(options, 'x', 'extract', 'get') || has(options, 'O', 'to-stdout', 'k')) return
  if (has(options, 'keep-old-files', 'skip-old-files')) return
  addUnpacked(effects, place, valueOf(options, 'C', 'directory'), operands)
}

/** `7z x a.7z -odir member…` */
function unpackSeven({ args, place }: Invocation, effects: Effects): void {
  const [verb, ...rest] = args
  const { options, operands } = readOptions(rest, { attached: 'o' })
  if (!/^[xe]$/.test(verb?.text ?? '') || rest.some(({ text }) => text === '-so')) return
  addUnpacked(effects, place, valueOf(options, 'o'), operands.slice(1))
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
    const out = valueOf(options, 'o')
    if (out !== undefined) return addWrites(effects, place, [{ text: out, glob: false }])
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
