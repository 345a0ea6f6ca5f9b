import { attempt } from '../core/attempt.ts'

/*
 * A repository can name programs that git starts: hooks, filters, drivers. One from elsewhere, or
 * one that an agent may write to, is nobody's order to start them as us. What a person has set for
 * the whole login (`~/.gitconfig`, and above) is: LFS, as `git lfs install` sets it up, works.
 */

/** Before the command of every git that we start: what may be off whatever a repository says. */
export const QUIET = [
  ...['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '-c', 'gc.auto=0'],
  ...['-c', 'maintenance.auto=false', '-c', 'core.quotePath=false', '-c', 'core.pager=cat'],
  ...['-c', 'commit.gpgSign=false', '-c', 'submodule.recurse=false'],
  ...['-c', 'rerere.enabled=false', '-c', 'merge.verifySignatures=false'],
  // An address that is a command (`ext::sh -c …`), also when git fetches what it lacks.
  ...['-c', 'protocol.ext.allow=never'],
]

/** Settings that name a program, as git lists them, and what they say where nobody named one. */
const INSTEAD: readonly [key: RegExp, value: string][] = [
  [/^filter\..+\.required$/, 'false'],
  [/^filter\..+\.(?:clean|smudge|process)$/, ''],
  // Not empty: that would take our side without a word.
  [/^merge\..+\.driver$/, 'git merge-file --marker-size=%L %A %O %B'],
  [/^diff\..+\.textconv$/, 'cat'],
  [/^diff\.(?:.+\.command|external)$/, 'true'],
  [/^core\.sshcommand$/, 'ssh'],
  [/^core\.askpass$/, ''],
  [/^(?:core|sequence)\.(?:editor|gitproxy|alternaterefscommand)$/, 'true'],
  [/^(?:hook\..+\.command|gc\.recentobjectshook|gpg\.ssh\.defaultkeycommand)$/, 'true'],
  [/^credential\.(?:.+\.)?helper$/, ''],
  [/^gpg\.(?:.+\.)?program$/, 'gpg'],
  [/^remote\..+\.uploadpack$/, 'git-upload-pack'],
  [/^remote\..+\.receivepack$/, 'git-receive-pack'],
  [/^trailer\..+\.(?:command|cmd)$/, 'true'],
]

/** Asks git for all settings, and where each is from. */
export const LIST = ['config', '--list', '-z', '--show-scope']

/**
 * The variables that switch off what a repository's own settings start, behind `count` that are
 * there. As arguments (`-c`) they could not have every name: one may contain `=`.
 */
export function offIn(listed: string, count = 0): Record<string, string> {
  const parts = listed.split('\0')
  const settings = Array.from({ length: Math.floor(parts.length / 2) }, (_, i) => {
    const [key = '', ...value] = parts[2 * i + 1]!.split('\n')
    return { isOwn: /^(?:local|worktree)$/.test(parts[2 * i]!), key, value: value.join('\n') }
  })
  const own = new Set(settings.filter(({ isOwn }) => isOwn).map(({ key }) => key))
  const said: { key: string; value: string }[] = []
  for (const key of own) {
    const [, value] = INSTEAD.find(([program]) => program.test(key)) ?? []
    if (value === undefined) continue
    // What the login has counts again: the last one does.
    said.push({ key, value }, ...settings.filter((each) => !each.isOwn && each.key === key))
  }
  const variables = said.flatMap(({ key, value }, i) => [
    [`GIT_CONFIG_KEY_${count + i}`, key],
    [`GIT_CONFIG_VALUE_${count + i}`, value],
  ])
  return Object.fromEntries([['GIT_CONFIG_COUNT', String(count + said.length)], ...variables])
}

const known = new Map<string, Record<string, string>>()
/** What a configuration includes may never come to an end; then no git will do anything here. */
const LIST_MS = 1_000

/** The same for a program that ends soon, and may ask several times: its whole environment. */
function quietEnvironment(dir: string): NodeJS.ProcessEnv {
  const list = () => run(dir, LIST, LIST_MS, process.env)
  const count = Number(process.env['GIT_CONFIG_COUNT'] ?? 0)
  const off = known.get(dir) ?? offIn(attempt(list, ''), count)
  known.set(dir, off)
  return { ...process.env, ...off }
}

const OUTPUT_MAX = 64 * 1024 * 1024

function run(dir: string, args: string[], timeout: number, env: NodeJS.ProcessEnv): string {
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  return execFileSync('git', ['-C', dir, ...args], {
    ...{ encoding: 'utf8', timeout, env, maxBuffer: OUTPUT_MAX },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/**
 * What git prints, for a program that ends soon; undefined where it says no: then it will say so to
 * everybody. Throws when it takes too long: then nothing is known. With `isList` it reads no
 * file that a filter could be asked for, and so need not be told of them.
 */
export function gitNow(
  dir: string,
  args: string[],
  { timeout_ms, isList = false }: { timeout_ms: number; isList?: boolean },
): string | undefined {
  try {
    const env = isList ? process.env : quietEnvironment(dir)
    return run(dir, [...QUIET, ...args], Math.max(1, Math.ceil(timeout_ms)), env)
  } catch (error) {
    const { status, code } = error as { status: number | null; code?: string }
    if (typeof status === 'number' || code === 'ENOENT') return undefined
    throw new Error(`git could not be asked (${code})`, { cause: error })
  }
}
