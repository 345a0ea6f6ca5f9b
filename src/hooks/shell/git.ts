import type { Argument, Discard, Effects, Invocation, RunScript, ShellPlace } from './effects.ts'
import { addRemoved, addTouched, addWrites, has, pathOf, readOptions, valueOf } from './options.ts'
import { addGuessed } from './guess.ts'
import { addPatch } from './writers.ts'

/** Options before the subcommand that take the next word. */
const VALUED = new Set(['--git-dir', '--namespace', '--exec-path', '--config-env'])

/** To git, the top of the checkout. */
const ROOT = ':/'

type Verb = (args: Argument[], place: ShellPlace, effects: Effects, call: Invocation) => void

/** Subcommands that change files, commit or push; all others are taken to do neither. */
const VERBS: Record<string, Verb> = {
  commit,
  add: (args, place, effects) => {
    const { options, operands: words } = readOptions(args)
    if (has(options, 'n', 'dry-run')) return
    effects.added.push(...pathsOf(words, place))
    const isAll = has(options, 'A', 'all', 'u', 'update') && words.length === 0
    if (isAll && place.cwd !== undefined) effects.added.push(ROOT)
  },
  push: (args, { cwd }, effects) => {
    const { options } = readOptions(args, { valued: 'o' })
    if (cwd !== undefined && !has(options, 'n', 'dry-run')) effects.pushes.push(cwd)
  },
  mv: (args, place, effects) => {
    if (!has(readOptions(args).options, 'n', 'dry-run')) addWrites(effects, place, operands(args))
  },
  rm: (args, place, effects) => {
    const { options } = readOptions(args)
    if (has(options, 'n', 'dry-run', 'cached')) return
    const [plain, matching] = apart(operands(args))
    addRemoved(effects, place, plain)
    if (matching) discard(place, effects, 'known', { matching })
  },
  checkout: (args, place, effects) => {
    const { options, afterDashes } = readOptions(args, { valued: 'bB' })
    if (afterDashes) return take(afterDashes, place, effects)
    // The first word may be a branch or a commit, for which git writes over nothing.
    const words = has(options, 'b', 'B', 'orphan') ? [] : operands(args)
    const paths = words.filter((word, i) => i > 0 || isPath(word, place))
    if (paths.length > 0) take(paths, place, effects)
    else if (has(options, 'f', 'force')) discard(place, effects, 'tracked')
  },
  'checkout-index': (args, place, effects) => {
    const { options, operands: paths } = readOptions(args, { long: ['prefix', 'stage'] })
    if (!has(options, 'f', 'force') || has(options, 'prefix')) return
    if (has(options, 'a', 'all')) discard(place, effects, 'tracked')
    else addWrites(effects, place, paths)
  },
  'read-tree': (args, place, effects) => {
    const { options } = readOptions(args, { long: ['prefix', 'index-output'] })
    if (has(options, 'u') && has(options, 'reset')) discard(place, effects, 'tracked')
  },
  restore: (args, place, effects) => {
    const { options, operands: paths } = readOptions(args, { valued: 's', long: ['source'] })
    const onlyIndex = has(options, 'staged', 'S') && !has(options, 'worktree', 'W')
    if (!onlyIndex) take(paths, place, effects)
  },
  switch: (args, place, effects) => {
    const { options } = readOptions(args, { valued: 'cC' })
    if (has(options, 'f', 'force', 'discard-changes')) discard(place, effects, 'tracked')
  },
  reset: (args, place, effects) => {
    if (has(readOptions(args).options, 'hard', 'merge')) discard(place, effects, 'tracked')
  },
  worktree: (args, place, effects) => {
    const { options, operands: words } = readOptions(args)
    const isForced = words[0]?.text === 'remove' && has(options, 'f', 'force')
    if (isForced) addRemoved(effects, place, words.slice(1))
  },
  'merge-file': (args, place, effects) => {
    const { options, operands: files } = readOptions(args, { valued: 'L' })
    if (!has(options, 'p', 'stdout')) addWrites(effects, place, files.slice(0, 1))
  },
  clean,
  init: (args, place, effects) => {
    const { operands: paths } = readOptions(args, { valued: 'b', long: INIT_LONG })
    addMade(place, effects, paths[0] ?? { text: '.', glob: false })
  },
  clone: (args, place, effects) => {
    const { operands: paths } = readOptions(args, { valued: 'boujc', long: INIT_LONG })
    const name = paths[0]?.text?.replace(/(?:\/|\.git|\/\.git)+$/, '').replace(/^.*[/:]/, '')
    addMade(place, effects, paths[1] ?? { text: name, glob: false })
  },
  stash,
  apply,
  am: apply,
}

/** `git apply`, and `git am`, which commits what it applied. */
function apply(args: Argument[], place: ShellPlace, effects: Effects, { input }: Invocation): void {
  const { options, operands: files } = readOptions(args, {
    valued: 'pC',
    long: ['directory', 'exclude', 'include'],
  })
  if (place.cwd === undefined || has(options, 'check', 'stat', 'numstat', 'cached')) return
  const below = valueOf(options, 'directory')
  const dir = below === undefined ? place.cwd : (pathOf(place, below) ?? place.cwd)
  const patch = { dir, strip: Number(valueOf(options, 'p') ?? 1), format: 'diff' as const }
  if (files.length === 0) addPatch(effects, patch, input.file, input.text)
  for (const { text } of files) {
    if (text !== undefined) addPatch(effects, patch, pathOf(place, text), undefined)
  }
}

const INIT_LONG = ['template', 'separate-git-dir', 'initial-branch', 'branch', 'origin', 'depth']

/** A checkout of its own, in another one perhaps. */
function addMade(place: ShellPlace, effects: Effects, { text }: Argument): void {
  const path = text === undefined ? undefined : pathOf(place, text)
  if (path !== undefined) addTouched(effects, place, [{ text: `${path}/.git`, glob: false }])
}

/** Commands that git runs for us: `rebase --exec`, `submodule foreach`, `bisect run`. */
function handedOver(verb: string, args: Argument[]): string | undefined {
  const texts = args.map(({ text }) => text ?? '')
  if (verb === 'rebase') {
    const { options } = readOptions(args, { valued: 'xsX', long: ['exec'] })
    return valueOf(options, 'x', 'exec')
  }
  const isRun = (verb === 'submodule' && texts[0] === 'foreach') || texts[0] === 'run'
  return isRun && /^(?:submodule|bisect)$/.test(verb)
    ? texts.slice(texts[1] === '--recursive' ? 2 : 1).join(' ')
    : undefined
}

export function runGit(call: Invocation, effects: Effects, runScript: RunScript): void {
  const place = { ...call.place }
  const aliases = new Map<string, string>()
  let i = 0
  for (; i < call.args.length; i += 1) {
    const { text } = call.args[i]!
    if (text === '-C') {
      const to = call.args[(i += 1)]?.text
      place.cwd = to === undefined ? undefined : pathOf(place, to)
    } else if (text === '--work-tree') {
      place.cwd = pathOf(place, call.args[(i += 1)]?.text ?? '.')
    } else if (text === '-c') {
      const { text: set = '' } = call.args[(i += 1)] ?? {}
      const [, alias, value] = /^alias\.([^=]+)=(.*)$/s.exec(set) ?? []
      if (alias !== undefined) aliases.set(alias, value!)
      // A pager, an editor, a filter: all of them are commands.
      else addGuessed(set, place, effects)
    } else if (text?.startsWith('--work-tree=')) place.cwd = pathOf(place, text.slice(12))
    else if (VALUED.has(text ?? '')) i += 1
    else if (!text?.startsWith('-')) break
  }
  const verb = call.args[i]?.text ?? ''
  const rest = call.args.slice(i + 1)
  const alias = aliases.get(verb)
  if (alias !== undefined) {
    const words = rest.map(({ text: each }) => quoted(each ?? '')).join(' ')
    return runScript(`${meant(alias)} ${words}`, place)
  }
  const handed = verb === 'config' ? aliasSet(rest) : handedOver(verb, rest)
  if (handed !== undefined) runScript(handed, place)
  // `git diff --output a.ts`, and the like of `log` and `show`.
  const { options } = readOptions(rest, { long: ['output'] })
  const text = valueOf(options, 'output')
  if (text !== undefined) addWrites(effects, place, [{ text, glob: false }])
  if (!Object.hasOwn(VERBS, verb)) return
  VERBS[verb]!(rest, place, effects, call)
  // Which files those are, only the file tells.
  const isListed = has(options, 'pathspec-from-file')
  if (isListed && !/^(?:add|commit)$/.test(verb)) discard(place, effects, 'tracked')
}

/** What an alias stands for. */
const meant = (alias: string) => (alias.startsWith('!') ? alias.slice(1) : `git ${alias}`)

/** `git config alias.x …`: later only its name is said, so it counts when it is set. */
function aliasSet(args: Argument[]): string | undefined {
  const words = operands(args)
  const at = words.findIndex(({ text }) => text?.startsWith('alias.'))
  const text = at === -1 ? undefined : words[at + 1]?.text
  return text === undefined ? undefined : meant(text)
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

function isPath({ text, glob }: Argument, place: ShellPlace): boolean {
  if (text === undefined) return false
  const path = pathOf(place, text)
  return glob || /^\.{0,2}\/|^\.$/.test(text) || (path !== undefined && place.isThere(path))
}

const operands = (args: Argument[]) => readOptions(args).operands

/**
 * Names of files, and, if there are any, all words as patterns: those of git (`:(glob)`, `:!`, and
 * `*` also in quotes) match in ways of their own, and one may take back what another says.
 */
function apart(words: Argument[]): [plain: Argument[], patterns: string[] | undefined] {
  const isPattern = ({ text }: Argument) => /^(?:\.\/?$|:)|[*?[]/.test(text ?? '')
  if (!words.some(isPattern)) return [words, undefined]
  return [words.filter((each) => !isPattern(each)), words.flatMap(({ text }) => text ?? [])]
}

/** What is taken from the index or a commit is written over. */
function take(paths: Argument[], place: ShellPlace, effects: Effects): void {
  const [plain, matching] = apart(paths)
  if (matching) discard(place, effects, 'tracked', { matching })
  addWrites(effects, place, plain)
}

function discard(
  { cwd }: ShellPlace,
  effects: Effects,
  what: Discard['what'],
  more: Pick<Discard, 'matching' | 'ignored'> = {},
): void {
  if (cwd !== undefined) effects.discards.push({ dir: cwd, what, ...more })
}

/** Without a path all that is below goes; with `-x` also what git ignores, as our own state is. */
function clean(args: Argument[], place: ShellPlace, effects: Effects): void {
  const read = readOptions(args, { valued: 'e', long: ['exclude'] })
  const { options, operands: paths } = read
  if (has(options, 'n', 'dry-run')) return
  const excluded = options.flatMap(({ flag, value }) =>
    flag === 'e' || flag === 'exclude' ? (value ?? '!') : [],
  )
  const isTakenBack = has(options, 'X') || excluded.some((each) => each.startsWith('!'))
  const ignored = has(options, 'x', 'X') ? { but: isTakenBack ? [] : excluded } : undefined
  const [plain, patterns] = apart(paths)
  addRemoved(effects, place, plain)
  const matching = patterns ?? (paths.length === 0 ? ['.'] : undefined)
  if (matching) discard(place, effects, 'untracked', { matching, ignored })
}

function commit(args: Argument[], place: ShellPlace, effects: Effects): void {
  const { options, operands: paths } = readOptions(args, {
    valued: 'mFcCt',
    long: ['message', 'file', 'author', 'date', 'template', 'fixup', 'squash', 'reuse-message'],
    attached: 'uS',
  })
  if (place.cwd === undefined || has(options, 'dry-run', 'short', 'porcelain', 'h')) return
  effects.commits.push({
    dir: place.cwd,
    all: has(options, 'a', 'all'),
    paths: pathsOf(paths, place),
    added: [...effects.added],
  })
}

function pathsOf(args: readonly Argument[], place: ShellPlace): string[] {
  return args.flatMap(({ text }) => {
    if (text === ROOT) return [ROOT]
    const path = text === undefined ? undefined : pathOf(place, text)
    return path === undefined ? [] : [path]
  })
}

/** `git stash` puts every agent's changes away; `pop` and `apply` write over. */
function stash(args: Argument[], place: ShellPlace, effects: Effects): void {
  const {
    options,
    operands: words,
    afterDashes,
  } = readOptions(args, { valued: 'm', long: ['message'] })
  const verb = words[0]?.text
  if (verb !== undefined && !/^(?:push|save)$/.test(verb) && !afterDashes) return
  const paths = afterDashes ?? (verb === 'push' ? words.slice(1) : [])
  if (paths.length > 0) return take(paths, place, effects)
  const untracked = has(options, 'u', 'include-untracked', 'a', 'all')
  const ignored = has(options, 'a', 'all') ? { but: [] } : undefined
  discard(place, effects, untracked ? 'all' : 'tracked', { ignored })
}
