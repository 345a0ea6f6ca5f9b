import { basename } from 'node:path'
import type {
  Argument,
  Effects,
  StandardInput,
  Invocation,
  RunScript,
  ShellPlace,
} from './effects.ts'
import { runGit } from './git.ts'
import { textsOf } from './words.ts'
import { addGuessed, codeIn } from './guess.ts'
import { addRemoved, addWrites, pathOf, readOptions } from './options.ts'
import { addOutputs, WRITERS } from './writers.ts'

/**
 * Commands that run the command in their arguments: their options that take a value, and how many
 * words stand before the command.
 */
const WRAPPERS: Record<string, { valued: string; long?: string; operands?: number }> = {
  sudo: {
    valued: 'ugCDhpRrTU',
    long: 'user group host prompt chdir chroot role type other-user close-from command-timeout',
  },
  doas: { valued: 'uC' },
  env: { valued: 'uCS', long: 'unset chdir split-string' },
  time: { valued: 'fo', long: 'format output' },
  nohup: { valued: '' },
  nice: { valued: 'n', long: 'adjustment' },
  ionice: { valued: 'cnp', long: 'class classdata' },
  stdbuf: { valued: 'ioe', long: 'input output error' },
  timeout: { valued: 'ks', long: 'signal kill-after', operands: 1 },
  flock: { valued: 'wE', long: 'timeout conflict-exit-code', operands: 1 },
  setsid: { valued: '' },
  command: { valued: '' },
  builtin: { valued: '' },
  exec: { valued: 'a' },
  xargs: {
    valued: 'adEILnPs',
    long: 'arg-file delimiter max-args max-procs max-chars process-slot-var',
  },
  busybox: { valued: '' },
  toybox: { valued: '' },
  chronic: { valued: '' },
  strace: { valued: 'aeEIoOpPsSuUX' },
  taskset: { valued: '', operands: 1 },
  su: { valued: 'csgGT' },
  chrt: { valued: 'TPD', operands: 1 },
  setpriv: { valued: '', long: 'reuid regid groups securebits pdeathsig' },
  runuser: { valued: 'ugG', long: 'user group supp-group' },
  npx: { valued: 'pc', long: 'package call' },
  bunx: { valued: '' },
  caffeinate: { valued: 'tw' },
  unshare: { valued: 'SGRwl', long: 'root wd setuid setgid' },
  script: { valued: 'cEImoOTBt' },
}

/** Programs that run another by one of these words: `pnpm exec prettier`, `uv run black`. */
const RUNNERS: Record<string, string> = {
  ...{ npm: 'exec x', pnpm: 'exec dlx', yarn: 'exec dlx', bun: 'x' },
  ...{ uv: 'run', poetry: 'run', pipenv: 'run', bundle: 'exec' },
}

const SHELLS = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh', 'ash', 'fish', 'csh', 'tcsh'])
/** Where such a word stands behind a program that nobody here knows, that one may start it. */
const STARTED = new Set(
  `rm mv cp ln dd tee sed git find xargs env touch truncate shred chmod chown rsync cd npx
  leasehold lh`.split(/\s+/),
)
/** These print or look for the words that they are given, or start them on another machine. */
const SAYS = new Set(
  `echo printf grep egrep fgrep rg ag man which type whatis apropos info help hash alias test [ ls
  ps kill pkill pgrep killall logger gh glab ssh docker podman kubectl`.split(/\s+/),
)
const FOLDER_CHANGES = new Set(['cd', 'pushd', 'chdir'])
const WRAPPED_MAX = 10

/** Adds what one command does to `effects`. May change `place.cwd` of the invocation. */
export function perform(call: Invocation, effects: Effects, runScript: RunScript): void {
  let { name, args, place } = call
  for (let i = 0; i < WRAPPED_MAX; i += 1) {
    const runs = RUNNERS[basename(name)]?.split(' ').includes(args[0]?.text ?? '')
    const wrapper = runs ? { valued: '' } : WRAPPERS[basename(name)]
    if (!wrapper) break
    const script = scriptIn(basename(name), args)
    if (script !== undefined) return runScript(script, place)
    const to = valueAfter(FOLDER_FLAGS[basename(name)] ?? [], args)
    if (to) place = placeAt(place, to.text)
    const { set, rest } = unwrap(runs ? args.slice(1) : args, wrapper)
    if (set.length > 0) place = { ...place, set: [...(place.set ?? []), ...set] }
    // A name that only a run would tell.
    if (rest[0]?.text === undefined) return
    const isPiped = basename(name) === 'xargs'
    name = rest[0].text
    args = [...rest.slice(1), ...(isPiped ? heard(call.input) : [])]
  }
  const short = basename(name)
  const invocation = { ...call, name: short, args, place }
  if (FOLDER_CHANGES.has(short)) call.place.cwd = folderAfter(invocation)
  else if (short === 'popd') call.place.cwd = undefined
  else if (SHELLS.has(short)) runShell(invocation, runScript)
  else if (short === 'eval') runText(args, invocation, effects, runScript)
  else if (short === 'trap') {
    runText(operandsOf(args).slice(0, 1), invocation, effects, runScript)
  } else if (short === 'watch') runText(operandsOf(args), invocation, effects, runScript)
  else if (short === 'git') runGit(invocation, effects, runScript)
  else if (short === 'find') runFind(invocation, effects, runScript)
  else if (/^(?:pwsh|powershell)(?:\.exe)?$/i.test(short)) {
    const { text } = valueAfter(['-c', '-Command', '-command'], args) ?? {}
    if (text !== undefined) runScript(text, place)
  } else {
    const texts = args.map(({ text }) => text)
    const code = codeIn(short, texts, call.input.text)
    if (code !== undefined) addGuessed(code, place, effects, 'code')
    const writer = writerOf(short)
    if (writer) writer(invocation, effects)
    else if (code === undefined && !SAYS.has(short)) startAny(invocation, effects, runScript)
  }
}

const OURS = /^(?:leasehold|lh)$/

/** A program that is not known: the file behind its `-o`, and a command among its words. */
function startAny(call: Invocation, effects: Effects, runScript: RunScript): void {
  const { args, place } = call
  addOutputs(call, effects)
  // What we write ourselves where an agent says so.
  const [noun, verb, ...files] = readOptions(args).operands
  const asked = `${noun?.text} ${verb?.text}`
  if (OURS.test(call.name) && /^(?:memory sync|db backup)$/.test(asked)) {
    addWrites(effects, place, files.slice(0, 1))
  }
  const isCommand = (each: Argument) => each.text !== undefined && isKnown(basename(each.text))
  const at = args.findIndex((each, i) => args[i - 1]?.text === '--' || isCommand(each))
  const name = args[at]?.text
  if (name !== undefined) perform({ ...call, name, args: args.slice(at + 1) }, effects, runScript)
}

const isKnown = (name: string) =>
  STARTED.has(name) || SHELLS.has(name) || Object.hasOwn(WRAPPERS, name)

/** Names that come from a pipe: one of the words of the commands before it, perhaps. */
function heard({ text, maybe = [] }: StandardInput): Argument[] {
  const words = [...maybe, ...(text?.split(/\s+/) ?? [])]
  return words.length > 0 ? [{ text: undefined, glob: false, maybe: words }] : []
}

/** PowerShell does not care for the case of its commands. */
const writerOf = (name: string) =>
  [name, name.toLowerCase()].flatMap((each) =>
    Object.hasOwn(WRITERS, each) ? WRITERS[each] : [],
  )[0]

/** `env -S 'rm a'`, `su -c 'rm a'`, `flock f -c 'rm a'`: a text that a shell takes apart again. */
function scriptIn(name: string, args: Argument[]): string | undefined {
  const flags = SCRIPTED[name]
  return flags && valueAfter(flags, args)?.text
}

/** The last of several short options in one word has the value: `su -lc`, `script -qc`. */
const valueAfter = (flags: string[], args: Argument[]) =>
  args[
    args.findIndex(({ text = '' }) =>
      flags.some((flag) => flag === text || flag === lastFlag(text)),
    ) + 1 || args.length
  ]

const lastFlag = (text: string) => text.replace(/^-[A-Za-z]*(?=[A-Za-z]$)/, '-')

const placeAt = (place: ShellPlace, to: string | undefined) => ({
  ...place,
  cwd: to === undefined ? undefined : pathOf(place, to),
})

/** `env -C dir rm a`: the command stands in another folder. */
const FOLDER_FLAGS: Record<string, string[]> = { env: ['-C', '--chdir'], sudo: ['-D', '--chdir'] }

const SCRIPTED: Record<string, string[]> = {
  env: ['-S', '--split-string'],
  su: ['-c', '--command'],
  runuser: ['-c', '--command'],
  flock: ['-c', '--command'],
  npx: ['-c', '--call'],
  script: ['-c', '--command'],
}

/** The command behind `sudo -u x`, `env A=b`, `timeout 5`, and what is set for it. */
function unwrap(args: Argument[], wrapper: (typeof WRAPPERS)[string]) {
  const { valued, long = '', operands = 0 } = wrapper
  const set: [string, Argument][] = []
  let i = 0
  for (; i < args.length; i += 1) {
    const text = args[i]!.text ?? ''
    if (text === '--') {
      i += 1
      break
    }
    const [, variable, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(text) ?? []
    if (variable !== undefined) {
      set.push([variable, { text: value, glob: false }])
      continue
    }
    if (!text.startsWith('-') || text === '-') break
    // `-u root`, `--user root`: the value is the next word; `-uroot` and `--user=root` carry it.
    if (/^-[A-Za-z]/.test(text) && takesNext(text, valued)) i += 1
    else if (text.startsWith('--') && long.split(' ').includes(text.slice(2))) i += 1
  }
  return { set, rest: args.slice(i + operands) }
}

/** `-u root`, `-nu root`; in `-uroot` the value is there already. */
const takesNext = (text: string, valued: string) =>
  text.split('').findIndex((flag, at) => at > 0 && valued.includes(flag)) === text.length - 1

function folderAfter({ args, place }: Invocation): string | undefined {
  const to = args.find(({ text }) => !/^-[LPe@n-]?$/.test(text ?? '') || text === '-')
  if (!to) return place.home
  if (to.text === undefined || to.glob || to.text === '-' || /^[+-]\d/.test(to.text))
    return undefined
  return pathOf(place, to.text)
}

/** `bash -c text`, `bash <<EOF`. A script in a file is not opened. */
function runShell({ args, input, place }: Invocation, runScript: RunScript): void {
  const { options, operands } = readOptions(args, { valued: 'oO' })
  if (options.some(({ flag }) => flag === 'c')) {
    if (operands[0]?.text !== undefined) runScript(operands[0].text, place, operands.slice(2))
    return
  }
  if (operands.length > 0) return
  for (const text of input.text === undefined ? (input.maybe ?? []) : [input.text]) {
    runScript(text, place)
  }
}

/** `find src -name '*.ts' -delete`, `-exec rm {} ;`: what it would find is in its folders. */
function runFind(call: Invocation, effects: Effects, runScript: RunScript): void {
  const { args, place } = call
  const at = args.findIndex(({ text }) => /^[-(!]/.test(text ?? ''))
  const folders = at === 0 ? [] : args.slice(0, at === -1 ? undefined : at)
  const from = folders.length > 0 ? folders : [{ text: '.', glob: false }]
  const words = args.map(({ text }) => text)
  if (words.includes('-delete')) addRemoved(effects, place, from)
  const printed = args.filter((_, i) => /^-(?:fprintf?0?|fls)$/.test(words[i - 1] ?? ''))
  addWrites(effects, place, printed)
  for (const [i, word] of words.entries()) {
    const rest = args.slice(i + 1)
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word ?? '') || rest[0]?.text === undefined) continue
    const end = rest.findIndex(({ text }) => text === ';' || text === '+')
    const run = rest.slice(1, end === -1 ? undefined : end)
    const found = run.flatMap((each) => (each.text?.includes('{}') ? from : [each]))
    perform({ ...call, place: { ...place }, name: rest[0].text, args: found }, effects, runScript)
  }
}

/** Of `trap` the first is the script; of `watch` all are. */
const operandsOf = (args: Argument[]) =>
  readOptions(args, { valued: 'n', long: ['interval'] }).operands

function runText(
  args: Argument[],
  { place }: Invocation,
  effects: Effects,
  runScript: RunScript,
): void {
  const texts = args.map(({ text }) => text)
  if (!texts.includes(undefined)) runScript(texts.join(' '), place)
  else addGuessed(textsOf(args).join(' '), place, effects)
}
