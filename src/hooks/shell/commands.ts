import { basename } from 'node:path'
import type { Argument, Effects, Invocation, RunScript, StandardInput } from './effects.ts'
import { runGit } from './git.ts'
import { addGuessed, codeIn } from './guess.ts'
import {
  addRemoved,
  addWrites,
  addWritten,
  among,
  ASSIGNED,
  pathOf,
  readOptions,
  valueOf,
} from './options.ts'
import { applyProgram } from './program.ts'
import { programNamed } from './programs.ts'
import { textsOf } from './words.ts'

const wordsOf = (text: string) => new Set(text.split(/\s+/))

const SHELLS = wordsOf('sh bash zsh dash ksh ash fish csh tcsh')
/** Where such a word stands behind a program that nobody here knows, that one may start it. */
const STARTED = wordsOf(
  `rm mv cp ln dd tee sed git find xargs env touch truncate shred chmod chown rsync cd npx
  leasehold lh`,
)
/** These print or look for the words that they are given, or start them on another machine. */
const SAYS = wordsOf(
  `echo printf grep egrep fgrep rg ag man which type whatis apropos info help hash alias test [ ls
  ps kill pkill pgrep killall logger gh glab ssh docker podman kubectl`,
)
const POWERSHELL = /^(?:pwsh|powershell)(?:\.exe)?$/i
const OURS = /^(?:leasehold|lh)$/
const WRAPPED_MAX = 10

type Runs = (call: Invocation, effects: Effects, runScript: RunScript) => void

/** Commands that change the shell itself, or run what they are given. */
const RUNS: Record<string, Runs> = {
  git: runGit,
  find: runFind,
  eval: (call, effects, runScript) => runText(call.args, call, effects, runScript),
  trap: (call, effects, runScript) => {
    runText(readOptions(call.args).operands.slice(0, 1), call, effects, runScript)
  },
  watch: (call, effects, runScript) => {
    const { operands } = readOptions(call.args, { valued: 'n', long: 'interval' })
    runText(operands, call, effects, runScript)
  },
}

/** Adds what one command does to `effects`. May change `place.cwd` of the invocation. */
export function perform(given: Invocation, effects: Effects, runScript: RunScript): void {
  const call = unwrapped(given, runScript)
  if (!call) return
  const { name, args, place, input } = call
  if (/^(?:cd|pushd|chdir)$/.test(name)) given.place.cwd = folderAfter(call)
  else if (name === 'popd') given.place.cwd = undefined
  else if (SHELLS.has(name)) runShell(call, runScript)
  else if (Object.hasOwn(RUNS, name)) RUNS[name]!(call, effects, runScript)
  else if (POWERSHELL.test(name)) {
    const at = args.findIndex(({ text }) => /^-c(?:ommand)?$/i.test(text ?? ''))
    const text = at === -1 ? undefined : args[at + 1]?.text
    if (text !== undefined) runScript(text, place)
  } else {
    const code = codeIn(
      name,
      args.map(({ text }) => text),
      input.text,
    )
    if (code !== undefined) addGuessed(code, place, effects, 'code')
    const program = programNamed(name)
    if (program && program.runs === undefined) applyProgram(program, call, effects)
    else if (code === undefined && !SAYS.has(name)) startAny(call, effects, runScript)
  }
}

/**
 * The command behind `sudo -u x`, `env A=b`, `timeout 5`, `pnpm exec`; undefined where it is a text
 * (`env -S 'rm a'`, `su -c 'rm a'`), which is run, and where only a run would tell its name.
 */
function unwrapped(call: Invocation, runScript: RunScript, depth = 0): Invocation | undefined {
  const name = basename(call.name)
  const { runs, verbs, text, folder, ...kinds } = programNamed(name) ?? {}
  const isVerb = verbs === undefined || verbs.split(' ').includes(call.args[0]?.text ?? '')
  if (runs === undefined || !isVerb || depth === WRAPPED_MAX) return { ...call, name }
  const args = verbs === undefined ? call.args : call.args.slice(1)
  const script = text && valueOf(readOptions(args, kinds).options, text)
  if (script !== undefined) {
    runScript(script, call.place)
    return undefined
  }
  const { options, operands } = readOptions(args, kinds, runs)
  const at = operands.findIndex((each) => !ASSIGNED.test(each.text ?? ''))
  const [inner, ...words] = at === -1 ? [] : operands.slice(at + runs)
  if (inner?.text === undefined) return undefined
  const [moved] = among(options, folder ?? '')
  const set = operands.slice(0, at).map((each): [string, Argument] => {
    const [, variable, value] = ASSIGNED.exec(each.text!)!
    return [variable!, { text: value, glob: false }]
  })
  const place = {
    ...call.place,
    ...(moved && { cwd: pathOf(call.place, moved.value) }),
    ...(set.length > 0 && { set: [...(call.place.set ?? []), ...set] }),
  }
  const piped = name === 'xargs' ? heard(call.input) : []
  const run = { ...call, name: inner.text, args: [...words, ...piped], place }
  return unwrapped(run, runScript, depth + 1)
}

/** A program that is not known: the file behind its `-o`, and a command among its words. */
function startAny(call: Invocation, effects: Effects, runScript: RunScript): void {
  const { args, place } = call
  // `-o file`, `--output=file`: so nearly every program is told what to write.
  for (const [i, { text = '' }] of args.entries()) {
    const [flag, value] = /^(?:-out$|-o|--out(?:put)?(?:-?[fF]ile)?(?:=|$))(.*)$/s.exec(text) ?? []
    if (flag !== undefined) addWritten(effects, place, value || args[i + 1]?.text)
  }
  // What we write ourselves where an agent says so.
  const [noun, verb, ...files] = readOptions(args).operands
  const asked = `${noun?.text} ${verb?.text}`
  if (OURS.test(call.name) && /^(?:memory sync|db backup)$/.test(asked)) {
    addWrites(effects, place, files.slice(0, 1))
  }
  const isCommand = ({ text }: Argument) => text !== undefined && isKnown(basename(text))
  const at = args.findIndex((each, i) => args[i - 1]?.text === '--' || isCommand(each))
  const name = args[at]?.text
  if (name !== undefined) perform({ ...call, name, args: args.slice(at + 1) }, effects, runScript)
}

function isKnown(name: string): boolean {
  const { runs, verbs } = programNamed(name) ?? {}
  return STARTED.has(name) || SHELLS.has(name) || (runs !== undefined && verbs === undefined)
}

/** Names that come from a pipe: one of the words of the commands before it, perhaps. */
function heard({ text, maybe = [] }: StandardInput): Argument[] {
  const words = [...maybe, ...(text?.split(/\s+/) ?? [])]
  return words.length > 0 ? [{ text: undefined, glob: false, maybe: words }] : []
}

function folderAfter({ args, place }: Invocation): string | undefined {
  const to = args.find(({ text }) => !/^-[LPe@n-]?$/.test(text ?? '') || text === '-')
  if (!to) return place.home
  const { text = '-', glob } = to
  return glob || text === '-' || /^[+-]\d/.test(text) ? undefined : pathOf(place, text)
}

/** `bash -c text`, `bash <<EOF`. A script in a file is not opened. */
function runShell({ args, input, place }: Invocation, runScript: RunScript): void {
  const { options, operands } = readOptions(args, { valued: 'oO' })
  if (among(options, 'c').length > 0) {
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
  const words = args.map(({ text }) => text ?? '')
  const at = words.findIndex((text) => /^[-(!]/.test(text))
  const folders = at === 0 ? [] : args.slice(0, at === -1 ? undefined : at)
  const from = folders.length > 0 ? folders : [{ text: '.', glob: false }]
  for (const [i, word] of words.entries()) {
    if (word === '-delete') addRemoved(effects, place, from)
    if (/^-(?:fprintf?0?|fls)$/.test(word)) addWrites(effects, place, args.slice(i + 1, i + 2))
    const rest = args.slice(i + 1)
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word) || rest[0]?.text === undefined) continue
    const end = rest.findIndex(({ text }) => text === ';' || text === '+')
    const run = rest.slice(1, end === -1 ? undefined : end)
    const found = run.flatMap((each) => (each.text?.includes('{}') ? from : [each]))
    perform({ ...call, place: { ...place }, name: rest[0].text, args: found }, effects, runScript)
  }
}

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
