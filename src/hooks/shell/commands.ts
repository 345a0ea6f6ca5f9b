import { basename } from 'node:path'
import { type Argument, type Effects, type Invocation } from './effects.ts'
import { runGit } from './git.ts'
import { addRemoved, pathOf, readOptions } from './options.ts'
import { WRITERS } from './writers.ts'

type RunScript = (text: string) => void

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
  env: { valued: 'uCS', long: 'unset chdir' },
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
}

const SHELLS = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh', 'ash'])
const FOLDER_CHANGES = new Set(['cd', 'pushd', 'chdir'])
const WRAPPED_MAX = 10

/** Adds what one command does to `effects`. May change `place.cwd` of the invocation. */
export function perform(call: Invocation, effects: Effects, runScript: RunScript): void {
  let { name, args } = call
  for (let i = 0; i < WRAPPED_MAX; i += 1) {
    const wrapper = WRAPPERS[basename(name)]
    if (!wrapper) break
    const rest = unwrap(args, wrapper)
    // A name that only a run would tell.
    if (rest[0]?.text === undefined) return
    name = rest[0].text
    args = rest.slice(1)
  }
  const short = basename(name)
  const invocation = { ...call, name: short, args }
  if (FOLDER_CHANGES.has(short)) call.place.cwd = folderAfter(invocation)
  else if (short === 'popd') call.place.cwd = undefined
  else if (SHELLS.has(short)) runShell(invocation, runScript)
  else if (short === 'eval') runText(args, runScript)
  else if (short === 'git') runGit(invocation, effects)
  else if (short === 'find') runFind(invocation, effects, runScript)
  else if (Object.hasOwn(WRITERS, short)) WRITERS[short]!(invocation, effects)
}

/** The command behind `sudo -u x`, `env A=b`, `timeout 5`. */
function unwrap(args: Argument[], wrapper: (typeof WRAPPERS)[string]): Argument[] {
  const { valued, long = '', operands = 0 } = wrapper
  let i = 0
  for (; i < args.length; i += 1) {
    const text = args[i]!.text ?? ''
    if (text === '--') {
      i += 1
      break
    }
    if (/^[A-Za-z_]\w*=/.test(text)) continue
    if (!text.startsWith('-') || text === '-') break
    // `-u root`, `--user root`: the value is the next word; `-uroot` and `--user=root` carry it.
    if (/^-[A-Za-z]$/.test(text) && valued.includes(text[1]!)) i += 1
    else if (text.startsWith('--') && long.split(' ').includes(text.slice(2))) i += 1
  }
  return args.slice(i + operands)
}

function folderAfter({ args, place }: Invocation): string | undefined {
  const to = args.find(({ text }) => !/^-[LPe@n]?$/.test(text ?? '') || text === '-')
  if (!to) return place.home
  if (to.text === undefined || to.glob || to.text === '-' || /^[+-]\d/.test(to.text))
    return undefined
  return pathOf(place, to.text)
}

/** `bash -c text`, `bash <<EOF`. A script in a file is not opened. */
function runShell({ args, input }: Invocation, runScript: RunScript): void {
  const { options, operands } = readOptions(args, { valued: 'oO' })
  if (options.some(({ flag }) => flag === 'c')) {
    if (operands[0]?.text !== undefined) runScript(operands[0].text)
  } else if (operands.length === 0 && input.text !== undefined) runScript(input.text)
}

/** `find src -name '*.ts' -delete`, `-exec rm {} ;`: what it would find is in its folders. */
function runFind(call: Invocation, effects: Effects, runScript: RunScript): void {
  const { args, place } = call
  const at = args.findIndex(({ text }) => /^[-(!]/.test(text ?? ''))
  const folders = at === 0 ? [] : args.slice(0, at === -1 ? undefined : at)
  const from = folders.length > 0 ? folders : [{ text: '.', glob: false }]
  const words = args.map(({ text }) => text)
  if (words.includes('-delete')) addRemoved(effects, place, from)
  for (const [i, word] of words.entries()) {
    const rest = args.slice(i + 1)
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word ?? '') || rest[0]?.text === undefined) continue
    const end = rest.findIndex(({ text }) => text === ';' || text === '+')
    const run = rest.slice(1, end === -1 ? undefined : end)
    const found = run.flatMap((each) => (each.text?.includes('{}') ? from : [each]))
    perform({ ...call, place: { ...place }, name: rest[0].text, args: found }, effects, runScript)
  }
}

function runText(args: Argument[], runScript: RunScript): void {
  const texts = args.map(({ text }) => text)
  if (!texts.includes(undefined)) runScript(texts.join(' '))
}
