import type { Argument, Discard, Effects, Invocation, RunScript, ShellPlace } from './effects.ts'
import { addGuessed } from './guess.ts'
import {
  addRemoved,
  addTouched,
  addWrites,
  among,
  has,
  pathOf,
  readOptions,
  valueOf,
} from './options.ts'
import { addPatch, ALL, applyProgram, discard, type Program } from './program.ts'

/** To git, the top of the checkout. */
const ROOT = ':/'
const MADE = 'template separate-git-dir initial-branch branch origin depth'
const DRY = 'n dry-run'

/** `git apply`, and `git am`, which commits what it applied. */
const APPLY: Program = {
  ...{ unless: 'check stat numstat cached', valued: 'pC', long: 'directory exclude include' },
  does: ({ options, operands: files, place, input }, effects) => {
    if (place.cwd === undefined) return
    const dir = pathOf(place, valueOf(options, 'directory') ?? '.') ?? place.cwd
    const patch = { dir, strip: Number(valueOf(options, 'p') ?? 1), format: 'diff' as const }
    if (files.length === 0) addPatch(effects, patch, input.file, input.text)
    for (const { text } of files) addPatch(effects, patch, pathOf(place, text), undefined)
  },
}

/** Verbs that change files, commit or push; all others are taken to do neither. */
const VERBS: Record<string, Program> = {
  commit: {
    unless: 'dry-run short porcelain h',
    valued: 'mFcCt',
    long: 'message file author date template fixup squash reuse-message',
    attached: 'uS',
    does: ({ options, operands, place }, effects) => {
      if (place.cwd === undefined) return
      effects.commits.push({
        dir: place.cwd,
        all: has(options, 'a all'),
        paths: pathsOf(operands, place),
        added: [...effects.added],
      })
    },
  },
  add: {
    unless: DRY,
    does: ({ options, operands, place }, effects) => {
      effects.added.push(...pathsOf(operands, place))
      const isAll = has(options, 'A all u update') && operands.length === 0
      if (isAll && place.cwd !== undefined) effects.added.push(ROOT)
    },
  },
  push: {
    ...{ unless: DRY, valued: 'o' },
    does: ({ place }, effects) => {
      if (place.cwd !== undefined) effects.pushes.push(place.cwd)
    },
  },
  mv: { unless: DRY, writes: ALL },
  rm: {
    unless: `${DRY} cached`,
    does: ({ operands, place }, effects) => {
      const [plain, matching] = apart(operands)
      addRemoved(effects, place, plain)
      if (matching) discard(effects, place, 'known', { matching })
    },
  },
  checkout: {
    valued: 'bB',
    does: ({ options, operands, afterDashes, place }, effects) => {
      if (afterDashes) return take(afterDashes, place, effects)
      // The first word may be a branch or a commit, for which git writes over nothing.
      const words = has(options, 'b B orphan') ? [] : operands
      const paths = words.filter((word, i) => i > 0 || isPath(word, place))
      if (paths.length > 0) take(paths, place, effects)
      else if (has(options, 'f force')) discard(effects, place, 'tracked')
    },
  },
  'checkout-index': {
    ...{ if: 'f force', unless: 'prefix', long: 'prefix stage' },
    does: ({ options, operands, place }, effects) => {
      if (has(options, 'a all')) discard(effects, place, 'tracked')
      else addWrites(effects, place, operands)
    },
  },
  'read-tree': {
    ...{ if: 'u', long: 'prefix index-output' },
    does: ({ options, place }, effects) => {
      if (has(options, 'reset')) discard(effects, place, 'tracked')
    },
  },
  restore: {
    ...{ valued: 's', long: 'source' },
    does: ({ options, operands, place }, effects) => {
      const onlyIndex = has(options, 'staged S') && !has(options, 'worktree W')
      if (!onlyIndex) take(operands, place, effects)
    },
  },
  switch: { valued: 'cC', if: 'f force discard-changes', discards: 'tracked' },
  reset: { if: 'hard merge', discards: 'tracked' },
  worktree: {
    if: 'f force',
    does: ({ operands: [verb, ...paths], place }, effects) => {
      if (verb?.text === 'remove') addRemoved(effects, place, paths)
    },
  },
  'merge-file': { valued: 'L', unless: 'p stdout', writes: [0, 1] },
  // Without a path all that is below goes; with `-x` also what git ignores, as our own state is.
  clean: {
    ...{ unless: DRY, valued: 'e', long: 'exclude' },
    does: ({ options, operands, place }, effects) => {
      const excluded = among(options, 'e exclude').map(({ value }) => value ?? '!')
      const isTakenBack = has(options, 'X') || excluded.some((each) => each.startsWith('!'))
      const ignored = has(options, 'x X') ? { but: isTakenBack ? [] : excluded } : undefined
      const [plain, patterns] = apart(operands)
      addRemoved(effects, place, plain)
      const matching = patterns ?? (operands.length === 0 ? ['.'] : undefined)
      if (matching) discard(effects, place, 'untracked', { matching, ignored })
    },
  },
  init: {
    ...{ valued: 'b', long: MADE },
    does: ({ operands: [to], place }, effects) => addMade(effects, place, to ? to.text : '.'),
  },
  clone: {
    ...{ valued: 'boujc', long: MADE },
    does: ({ operands: [from, to], place }, effects) => {
      const name = from?.text?.replace(/(?:\/|\.git|\/\.git)+$/, '').replace(/^.*[/:]/, '')
      addMade(effects, place, to ? to.text : name)
    },
  },
  // Puts every agent's changes away; `pop` and `apply` write over.
  stash: {
    ...{ valued: 'm', long: 'message' },
    does: ({ options, operands, afterDashes, place }, effects) => {
      const verb = operands[0]?.text
      if (verb !== undefined && !/^(?:push|save)$/.test(verb) && !afterDashes) return
      const paths = afterDashes ?? (verb === 'push' ? operands.slice(1) : [])
      if (paths.length > 0) return take(paths, place, effects)
      const what = has(options, 'u include-untracked a all') ? 'all' : 'tracked'
      const ignored = has(options, 'a all') ? { but: [] } : undefined
      discard(effects, place, what, { ignored })
    },
  },
  apply: APPLY,
  am: APPLY,
}

/** A checkout of its own, in another one perhaps. */
function addMade(effects: Effects, place: ShellPlace, text: string | undefined): void {
  const path = pathOf(place, text)
  if (path !== undefined) addTouched(effects, place, [{ text: `${path}/.git`, glob: false }])
}

/** What git is told before its verb: where it stands, and aliases. */
function beforeVerb(call: Invocation, effects: Effects) {
  const { args } = call
  const place = { ...call.place }
  const aliases = new Map<string, string>()
  let i = 0
  for (; i < args.length; i += 1) {
    const { text = '' } = args[i]!
    if (!text.startsWith('-')) break
    const [, flag = text, attached] = /^(--[^=]+)=(.*)$/s.exec(text) ?? []
    const takes = /^(?:-C|-c|--(?:work-tree|git-dir|namespace|exec-path|config-env))$/.test(flag)
    const value = attached ?? (takes ? args[(i += 1)]?.text : undefined)
    if (flag === '-C' || flag === '--work-tree') place.cwd = pathOf(place, value)
    if (flag !== '-c' || value === undefined) continue
    const [, alias, meaning] = /^alias\.([^=]+)=(.*)$/s.exec(value) ?? []
    if (alias !== undefined) aliases.set(alias, meaning!)
    // A pager, an editor, a filter: all of them are commands.
    else addGuessed(value, place, effects)
  }
  return { place, aliases, verb: args[i]?.text ?? '', args: args.slice(i + 1) }
}

export function runGit(call: Invocation, effects: Effects, runScript: RunScript): void {
  const { place, aliases, verb, args } = beforeVerb(call, effects)
  const alias = aliases.get(verb)
  if (alias !== undefined) {
    const words = args.map(({ text }) => quoted(text ?? '')).join(' ')
    return runScript(`${meant(alias)} ${words}`, place)
  }
  const handed = handedOver(verb, args)
  if (handed !== undefined) runScript(handed, place)
  // `git diff --output a.ts`, and the like of `log` and `show`.
  const own = { ...call, args, place }
  applyProgram({ long: 'output', outputs: 'output' }, own, effects)
  if (!Object.hasOwn(VERBS, verb)) return
  applyProgram(VERBS[verb]!, own, effects)
  // Which files those are, only the file tells.
  const isListed = args.some(({ text }) => text?.startsWith('--pathspec-from-file'))
  if (isListed && !/^(?:add|commit)$/.test(verb)) discard(effects, place, 'tracked')
}

/** Commands that git runs for us: `rebase --exec`, `submodule foreach`, `bisect run`. */
function handedOver(verb: string, args: Argument[]): string | undefined {
  const texts = args.map(({ text }) => text ?? '')
  const isRun = (verb === 'submodule' && texts[0] === 'foreach') || texts[0] === 'run'
  if (isRun && /^(?:submodule|bisect)$/.test(verb)) {
    return texts.slice(texts[1] === '--recursive' ? 2 : 1).join(' ')
  }
  if (verb === 'rebase') {
    return valueOf(readOptions(args, { valued: 'xsX', long: 'exec' }).options, 'x exec')
  }
  if (verb !== 'config') return undefined
  // `git config alias.x …`: later only its name is said, so it counts when it is set.
  const words = readOptions(args).operands
  const at = words.findIndex(({ text }) => text?.startsWith('alias.'))
  const text = at === -1 ? undefined : words[at + 1]?.text
  return text === undefined ? undefined : meant(text)
}

/** What an alias stands for. */
const meant = (alias: string) => (alias.startsWith('!') ? alias.slice(1) : `git ${alias}`)

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

function isPath({ text, glob }: Argument, place: ShellPlace): boolean {
  if (text === undefined) return false
  const path = pathOf(place, text)
  return glob || /^\.{0,2}\/|^\.$/.test(text) || (path !== undefined && place.isThere(path))
}

/**
 * Names of files, and, if there are any, all words as patterns: those of git (`:(glob)`, `:!`, and
 * `*` also in quotes) match in ways of their own, and one may take back what another says.
 */
function apart(words: Argument[]): [plain: Argument[], patterns: Discard['matching']] {
  const isPattern = ({ text }: Argument) => /^(?:\.\/?$|:)|[*?[]/.test(text ?? '')
  if (!words.some(isPattern)) return [words, undefined]
  return [words.filter((each) => !isPattern(each)), words.flatMap(({ text }) => text ?? [])]
}

/** What is taken from the index or a commit is written over. */
function take(paths: Argument[], place: ShellPlace, effects: Effects): void {
  const [plain, matching] = apart(paths)
  if (matching) discard(effects, place, 'tracked', { matching })
  addWrites(effects, place, plain)
}

const pathsOf = (args: readonly Argument[], place: ShellPlace): string[] =>
  args.flatMap(({ text }) => (text === ROOT ? [ROOT] : (pathOf(place, text) ?? [])))
