import type { Argument, Effects, Invocation, ShellPlace } from './effects.ts'
import { addRemoved, addWrites, has, pathOf, readOptions, valueOf } from './options.ts'
import { addPatch } from './writers.ts'

/** Options before the subcommand that take the next word. */
const VALUED = new Set(['-c', '--git-dir', '--namespace', '--exec-path'])

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
    if (!has(options, 'n', 'dry-run', 'cached')) addRemoved(effects, place, operands(args))
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
  clean: (args, place, effects) => {
    const { options, operands: paths } = readOptions(args, { valued: 'e', long: ['exclude'] })
    if (!has(options, 'f', 'force') || has(options, 'n', 'dry-run')) return
    if (paths.length > 0) addWrites(effects, place, paths)
    else discard(place, effects, 'untracked', true)
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

export function runGit(call: Invocation, effects: Effects): void {
  const place = { ...call.place }
  let i = 0
  for (; i < call.args.length; i += 1) {
    const { text } = call.args[i]!
    if (text === '-C') {
      const to = call.args[(i += 1)]?.text
      place.cwd = to === undefined ? undefined : pathOf(place, to)
    } else if (text === '--work-tree') {
      place.cwd = pathOf(place, call.args[(i += 1)]?.text ?? '.')
    } else if (text?.startsWith('--work-tree=')) place.cwd = pathOf(place, text.slice(12))
    else if (VALUED.has(text ?? '')) i += 1
    else if (!text?.startsWith('-')) break
  }
  const verb = call.args[i]?.text ?? ''
  // `git diff --output a.ts`, and the like of `log` and `show`.
  const { options } = readOptions(call.args.slice(i + 1), { long: ['output'] })
  const text = valueOf(options, 'output')
  if (text !== undefined) addWrites(effects, place, [{ text, glob: false }])
  if (Object.hasOwn(VERBS, verb)) VERBS[verb]!(call.args.slice(i + 1), place, effects, call)
}

function isPath({ text, glob }: Argument, place: ShellPlace): boolean {
  if (text === undefined) return false
  const path = pathOf(place, text)
  return glob || /^\.{0,2}\/|^\.$/.test(text) || (path !== undefined && place.isThere(path))
}

const operands = (args: Argument[]) => readOptions(args).operands

/** What is taken from the index or a commit is written over. The root means all of it. */
function take(paths: Argument[], place: ShellPlace, effects: Effects): void {
  const isAll = ({ text }: Argument) => /^(?:\.\/?|:\/|\*)$/.test(text ?? '')
  if (paths.some(isAll)) discard(place, effects, 'tracked', true)
  addWrites(
    effects,
    place,
    paths.filter((each) => !isAll(each)),
  )
}

function discard(
  { cwd }: ShellPlace,
  effects: Effects,
  what: 'tracked' | 'untracked' | 'all',
  below = false,
): void {
  if (cwd !== undefined) effects.discards.push({ dir: cwd, what, below })
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
  if (afterDashes && afterDashes.length > 0) return addWrites(effects, place, afterDashes)
  const paths = verb === 'push' ? words.slice(1) : []
  if (paths.length > 0) return addWrites(effects, place, paths)
  const untracked = has(options, 'u', 'include-untracked', 'a', 'all')
  discard(place, effects, untracked ? 'all' : 'tracked')
}
