import { basename, dirname, join, resolve } from 'node:path'
import type { Argument, Effects, Invocation, ShellPlace } from './effects.ts'
import { ARCHIVERS } from './archives.ts'
import { CMDLETS } from './powershell.ts'
import {
  addRemoved,
  addTouched,
  addWrites,
  has,
  pathOf,
  readOptions,
  targetsOf,
  valueOf,
  type Writer,
} from './options.ts'

const operandsOf =
  (valued: string, long: readonly string[] = []): Writer =>
  ({ args, place }, effects) => {
    addWrites(effects, place, readOptions(args, { valued, long }).operands)
  }

const addValue = (effects: Effects, place: ShellPlace, text: string | undefined) =>
  text !== undefined && text !== '-' && addWrites(effects, place, [{ text, glob: false }])

/** `-o file`, `--output=file`: so nearly every program is told what to write. */
export const addOutputs: Writer = ({ args, place }, effects) => {
  for (const [i, { text = '' }] of args.entries()) {
    const [flag, value] = /^(?:-o|--out(?:put)?(?:-?[fF]ile)?(?:=|$))(.*)$/s.exec(text) ?? []
    if (flag !== undefined) addValue(effects, place, value || args[i + 1]?.text)
  }
}

/** Without options, the second word is the file that is written. */
const secondOf =
  (valued: string): Writer =>
  ({ args, place }, effects) => {
    addWrites(effects, place, readOptions(args, { valued }).operands.slice(1, 2))
  }

const operandsIn = (args: Argument[]) => readOptions(args).operands

/**
 * Programs that write the files they are given, if one of these flags says so. Of a folder nobody
 * can say which of its files they would change: the second net looks at those.
 */
const FIXERS: Record<string, Writer> = Object.fromEntries(
  Object.entries({
    prettier: ['write', 'w'],
    eslint: ['fix'],
    biome: ['write', 'fix'],
    gofmt: ['w'],
    goimports: ['w'],
    'clang-format': ['i'],
    yq: ['i', 'inplace'],
    autopep8: ['i', 'in-place'],
    ...{ shfmt: ['w', 'write'], gofumpt: ['w'], stylelint: ['fix'], oxlint: ['fix'] },
    ...{ rubocop: ['a', 'A', 'autocorrect', 'autocorrect-all'], ruff: ['fix'] },
    ...{ black: [], isort: [], rustfmt: [], oxfmt: [], sd: [] },
  }).map(([name, flags]): [string, Writer] => [
    name,
    ({ args, place }, effects) => {
      const { options, operands } = readOptions(args)
      if (flags.length > 0 && !has(options, ...flags)) return
      if (has(options, 'check', 'c', 'diff')) return
      const files = operands.filter(({ text, glob }) => {
        const path = text === undefined ? undefined : pathOf(place, text)
        return path !== undefined && (glob || place.isThere(path)) && !place.isFolder(path)
      })
      addWrites(effects, place, files)
    },
  ]),
)

/** Programs that change modes, owners and folders, and nothing in a file. */
const TOUCHERS: Record<string, Writer> = Object.fromEntries(
  'mkdir rmdir chmod chown chgrp chattr setfacl mount umount'.split(' ').map((name) => [
    name,
    ({ args, place }, effects) => {
      const { options, operands } = readOptions(args, { valued: name === 'setfacl' ? 'mxM' : '' })
      addTouched(effects, place, operands, has(options, 'R', 'recursive'))
    },
  ]),
)

/** Commands that write files which their arguments name. Anything else is taken to write none. */
export const WRITERS: Record<string, Writer> = {
  ...ARCHIVERS,
  ...CMDLETS,
  ...TOUCHERS,
  tee: operandsOf(''),
  sqlite3: ({ args, place }, effects) => addWrites(effects, place, operandsIn(args).slice(0, 1)),
  sponge: operandsOf(''),
  touch: operandsOf('drt', ['date', 'reference', 'time']),
  truncate: operandsOf('rs', ['reference', 'size']),
  unlink: operandsOf(''),
  shred: operandsOf('ns', ['iterations', 'size']),
  rm: ({ args, place }, effects) => addRemoved(effects, place, readOptions(args).operands),
  sed: writeSed,
  gsed: writeSed,
  perl: writePerl,
  ruby: writePerl,
  cp: (call, effects) => copy(call, effects, false),
  mv: (call, effects) => copy(call, effects, true),
  install: (call, effects) => copy(call, effects, false, 'gmoSt'),
  ln: link,
  dd: writeDd,
  patch: writePatch,
  apply_patch: writeEnvelope,
  applypatch: writeEnvelope,
  curl: download,
  wget: ({ args, place }, effects) => {
    const long = ['output-document']
    const { options } = readOptions(args, { valued: 'OoPUTtQlADIXBei', long })
    addValue(effects, place, valueOf(options, 'O', ...long))
  },
  openssl: ({ args, place }, effects) => {
    addWrites(
      effects,
      place,
      args.slice(args.findIndex(({ text }) => text === '-out') + 1 || Infinity).slice(0, 1),
    )
  },
  ed: operandsOf('p'),
  ex: operandsOf('cTtwS'),
  vi: operandsOf('cTtwSu', ['cmd']),
  vim: operandsOf('cTtwSu', ['cmd']),
  nvim: operandsOf('cTtwSu', ['cmd']),
  emacs: operandsOf('flL', ['eval', 'load', 'funcall', 'execute']),
  fallocate: operandsOf('lop', ['length', 'offset']),
  dos2unix: operandsOf(''),
  unix2dos: operandsOf(''),
  link: ({ args, place }, effects) => addWrites(effects, place, args.slice(1, 2)),
  uniq: secondOf('fsw'),
  xxd: secondOf('cglos'),
  scp: (call, effects) => {
    // One of another machine is not ours.
    const { operands } = readOptions(call.args, { valued: 'cDFiJloPSX' })
    if (!/^[^/]+:/.test(operands.at(-1)?.text ?? ':')) copy(call, effects, false, 'cDFiJloPSX')
  },
  rename: ({ args, place }, effects) => addRemoved(effects, place, operandsIn(args).slice(1)),
  ...FIXERS,
  rsync: synchronize,
  awk: writeAwk,
  gawk: writeAwk,
}

/** `sed -i`, `-i.bak`, `--in-place`; on a Mac `sed -i ''`; and `w file` in a script. */
function writeSed({ args, place }: Invocation, effects: Effects): void {
  const read = readOptions(args, { valued: 'efl', long: ['expression', 'file'], attached: 'i' })
  const { options, operands } = read
  const files = operands.filter(({ text }) => text !== '')
  // Without -e the first word is the script.
  const isGiven = has(options, 'e', 'f', 'expression', 'file')
  const scripts = options.filter(({ flag }) => /^e(?:xpression)?$/.test(flag))
  const texts = isGiven ? scripts.map(({ value }) => value) : [files[0]?.text]
  addFound(effects, place, texts, /(?:^|[;{}\n]\s*|\/[gpIimeM\d]*|[\d$]\s*)w\s+([^\s;}]+)/g)
  if (has(options, 'i', 'in-place')) addWrites(effects, place, isGiven ? files : files.slice(1))
}

/** The files that a script of another language names, where that can be told from its text. */
function addFound(
  effects: Effects,
  place: ShellPlace,
  texts: (string | undefined)[],
  pattern: RegExp,
): void {
  for (const text of texts) {
    const found = [...(text ?? '').matchAll(pattern)].map(([, file]) => ({
      text: file,
      glob: false,
    }))
    addWrites(effects, place, found)
  }
}

/** `curl -o file`, and `-O`, which takes the name from the address. */
function download(call: Invocation, effects: Effects): void {
  const { args, place } = call
  const { options, operands } = readOptions(args, {
    valued: 'oXHduAebFTcmKCEQrUwyYxtz',
    long: ['output', 'output-dir', 'request', 'header', 'data'],
  })
  const into = valueOf(options, 'output-dir')
  const cwd = into === undefined ? place.cwd : pathOf(place, into)
  const named = options.filter(({ flag, value }) => /^o(?:utput)?$/.test(flag) && value !== '-')
  const isRemote = has(options, 'O', 'remote-name', 'remote-name-all')
  const taken = isRemote ? operands.map(({ text }) => text && basename(text.split('?')[0]!)) : []
  const files = [...named.map(({ value }) => value), ...taken]
  addWrites(
    effects,
    { ...place, cwd },
    files.map((text) => ({ text, glob: false })),
  )
}

/** `perl -pi -e script files`. */
function writePerl({ args, place }: Invocation, effects: Effects): void {
  const { options, operands } = readOptions(args, {
    valued: 'eEIMm',
    attached: 'i',
    numbered: '0l',
  })
  if (!has(options, 'i')) return
  addWrites(effects, place, has(options, 'e', 'E') ? operands : operands.slice(1))
}

/** `gawk -i inplace script files`; and `print > "file"` in the script. */
function writeAwk({ args, place }: Invocation, effects: Effects): void {
  const { options, operands } = readOptions(args, { valued: 'Ffvieo', long: ['include', 'file'] })
  addFound(effects, place, [operands[0]?.text], />\s*"([^"]+)"/g)
  if (valueOf(options, 'i', 'include') !== 'inplace') return
  addWrites(effects, place, has(options, 'f', 'file', 'e') ? operands : operands.slice(1))
}

/** The last word is a folder to be filled, or a file; one on another machine is not ours. */
function synchronize({ args, place }: Invocation, effects: Effects): void {
  const { options, operands } = readOptions(args, {
    valued: 'efBMT',
    long: ['exclude', 'include', 'filter', 'rsh', 'files-from', 'backup-dir'],
  })
  const to = operands.at(-1)
  if (has(options, 'n', 'dry-run', 'list-only') || operands.length < 2 || !to?.text) return
  if (/^[^/]+:/.test(to.text)) return
  const target = pathOf(place, to.text)
  if (target === undefined) return
  const isFolder = has(options, 'a', 'r', 'archive', 'recursive') || to.text.endsWith('/')
  const kind = isFolder || place.isFolder(target) ? 'tree' : 'file'
  const removes = options.some(({ flag }) => flag.startsWith('del'))
  effects.writes.push({ path: target, kind, removes })
}

/** The last word is where it goes; a folder takes each by its name. A move empties the source. */
function copy(call: Invocation, effects: Effects, moves: boolean, valued = 'St'): void {
  const { args, place } = call
  const { options, operands } = readOptions(args, {
    valued,
    // reason: the name of an option of install(1)
    long: ['target-directory', 'suffix', 'mode', 'owner', 'group'],
  })
  if (call.name === 'install' && has(options, 'd', 'directory')) return
  const into = valueOf(options, 't', 'target-directory')
  const sources = into === undefined ? operands.slice(0, -1) : operands
  const to = into === undefined ? operands.at(-1) : { text: into, glob: false }
  if (moves) addRemoved(effects, place, sources)
  if (has(options, 'l', 'link', 's', 'symbolic-link')) addLinked(call, effects, sources)
  if (to?.text === undefined) return addWrites(effects, place, to ? [to] : [])
  const target = pathOf(place, to.text)
  if (target === undefined) return
  const single = has(options, 'T', 'no-target-directory')
  const isFolder = !single && (to.text.endsWith('/') || place.isFolder(target))
  if (isFolder || sources.length > 1) addNamed(call, effects, sources, target)
  else {
    const trees = sources.some((each) => targetsOf(place, [each])[0]?.kind === 'tree')
    effects.writes.push({ path: target, kind: to.glob ? 'glob' : trees ? 'tree' : 'file' })
  }
}

function addNamed(
  { place }: Invocation,
  effects: Effects,
  sources: Argument[],
  into: string,
): void {
  for (const source of sources) {
    // Of a name that is not known, all that it may be.
    for (const from of targetsOf(place, [source])) {
      effects.writes.push({ path: join(into, basename(from.path)), kind: from.kind })
    }
  }
}

function link(call: Invocation, effects: Effects): void {
  const { args, place } = call
  const { options, operands } = readOptions(args, {
    valued: 'St',
    long: ['target-directory', 'suffix'],
  })
  const into = valueOf(options, 't', 'target-directory')
  const [first, second] = operands
  const sources = into === undefined && second ? operands.slice(0, -1) : operands
  const to = into ?? (second ? operands.at(-1)!.text : basename(first?.text ?? '.'))
  const target = to === undefined ? undefined : pathOf(place, to)
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
    const path = text === undefined ? undefined : pathOf(place, text)
    const ways = path === undefined ? [] : [path]
    if (text !== undefined && made !== undefined) {
      ways.push(resolve(dirname(made), text), resolve(made, text))
    }
    for (const each of ways) effects.touches.push({ path: each, kind: 'file' })
  }
}

function writeDd({ args, place }: Invocation, effects: Effects): void {
  for (const { text, glob } of args) {
    if (text?.startsWith('of=')) addWrites(effects, place, [{ text: text.slice(3), glob }])
  }
}

function writePatch({ args, place, input }: Invocation, effects: Effects): void {
  const { options, operands } = readOptions(args, {
    valued: 'pdiorFBzVYgD',
    long: ['strip', 'directory', 'input', 'output'],
  })
  if (has(options, 'dry-run')) return
  const at = valueOf(options, 'd', 'directory')
  const dir = at === undefined ? place.cwd : pathOf(place, at)
  const [file, patch] = operands
  if (file) return addWrites(effects, place, [file])
  if (dir === undefined) return
  const named = valueOf(options, 'i', 'input') ?? patch?.text
  const source = named === undefined ? input.file : pathOf(place, named)
  const strip = Number(valueOf(options, 'p', 'strip') ?? Number.POSITIVE_INFINITY)
  addPatch(effects, { dir, strip, format: 'diff' }, source, input.text)
}

function writeEnvelope({ args, place, input }: Invocation, effects: Effects): void {
  if (place.cwd === undefined) return
  const text = args[0]?.text ?? input.text
  addPatch(effects, { dir: place.cwd, strip: 0, format: 'envelope' }, input.file, text)
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
