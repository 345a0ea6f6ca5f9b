import { AsyncLocalStorage } from 'node:async_hooks'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { attempt } from '../core/attempt.ts'
import { argument, shortLine } from '../core/quote.ts'
import { Refusal } from '../core/refusal.ts'
import { LIST, offIn, QUIET } from './git_quiet.ts'
import { MARK, ownGroup } from './group.ts'
import { LINUX } from './proc.ts'

/**
 * Git, as our own programs ask it: never through a shell, with none of the environment that a hook
 * or an alias of somebody else may have set, and starting nothing that a repository names.
 */

/** How long a command may take that only looks, one that writes files, one that asks a remote. */
const LOOK_MS = 60_000
export const FILES_MS = 10 * 60_000
export const REMOTE_MS = 2 * 60_000
/** Told to stop, git takes its locks away. */
const STOP_MS = 2_000
/** Of what takes longer, somebody may want to know what is waited for. */
const SLOW_MS = 5_000
const OUTPUT_BYTES_MAX = 64 * 1024 ** 2
const WHO = { NAME: 'leasehold', EMAIL: 'leasehold@localhost' }

export interface GitOptions {
  /** What it reads on standard input. */
  input?: string | undefined
  /** Set besides, `GIT_INDEX_FILE` for example. */
  env?: Record<string, string> | undefined
  timeout_ms?: number | undefined
  /** Names of files are bytes, and need not be text: `latin1` keeps each byte as a character. */
  encoding?: 'latin1' | undefined
}

/** Who waits for git. */
interface Waiting {
  /** Nobody does any more: what runs is stopped. */
  signal: AbortSignal
  /** Is told what is waited for, when it takes long. */
  slow: (what: string) => void
}

const waiting = new AsyncLocalStorage<Waiting>()

/** Every git command that `work` asks for ends with `signal`, whoever asks on its way. */
export const whileWanted = <T>(by: Waiting, work: () => Promise<T>): Promise<T> =>
  waiting.run(by, work)

export interface GitSaid {
  code: number
  out: string
  err: string
}

/**
 * Runs git in `cwd` and tells how it ended, whatever that is. Refuses with `unavailable` when there
 * is no git, when it takes too long, or says more than can be kept: then nothing of it is left.
 */
export async function tryGit(
  cwd: string,
  args: string[],
  options: GitOptions = {},
): Promise<GitSaid> {
  const { code, out } = await run(cwd, LIST, { timeout_ms: options.timeout_ms })
  const env = { ...options.env, ...offIn(code === 0 ? out : '') }
  return run(cwd, [...QUIET, ...args], { ...options, env })
}

function run(cwd: string, args: string[], options: GitOptions): Promise<GitSaid> {
  const { input, env, timeout_ms = LOOK_MS, encoding = 'utf8' } = options
  const { signal, slow } = waiting.getStore() ?? {}
  const unwanted = 'nobody waits for it any more'
  if (signal?.aborted) return Promise.reject(notRun(args, `was not begun: ${unwanted}`))
  return new Promise((resolved, rejected) => {
    const child = startGit(cwd, 'git', args, env)
    const out: Buffer[] = []
    const err: Buffer[] = []
    let bytes = 0
    let ended: string | undefined
    const end = (reason: string) => {
      if (ended === undefined)
        void stopGit(child).then(() => rejected(notRun(args, `was stopped: ${reason}`)))
      ended ??= reason
    }
    const late = setTimeout(() => end(`it took more than ${timeout_ms / 1000} s`), timeout_ms)
    const long = setTimeout(() => slow?.(`git ${shown(args)} takes long`), SLOW_MS)
    const unwant = () => end(unwanted)
    signal?.addEventListener('abort', unwant)
    const over = () => {
      for (const timer of [late, long]) clearTimeout(timer)
      signal?.removeEventListener('abort', unwant)
    }
    const keep = (kept: Buffer[]) => (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > OUTPUT_BYTES_MAX) end('it said more than can be kept')
      else kept.push(chunk)
    }
    child.stdout.on('data', keep(out))
    child.stderr.on('data', keep(err))
    child.once('error', (error: NodeJS.ErrnoException) => {
      over()
      const why = error.code === 'ENOENT' ? missing(cwd) : error.message
      rejected(notRun(args, `could not be run: ${why}`))
    })
    child.once('close', (code, killed) => {
      over()
      if (ended !== undefined) return
      if (code === null) return rejected(notRun(args, `was ended by ${killed}`))
      const said = { out: Buffer.concat(out).toString(encoding), err: String(Buffer.concat(err)) }
      resolved({ code, ...said })
    })
    // It may end without having read all of it.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input ?? '', encoding)
  })
}

/**
 * A program that asks git, leading a group of its own: filters and helpers that git has started are
 * stopped with it. A program that may itself be stopped as a group finds them by their mark.
 */
export function startGit(
  cwd: string,
  program: string,
  args: string[],
  env?: Record<string, string>,
): ChildProcessWithoutNullStreams {
  const detached = LINUX || ownGroup() === undefined
  return spawn(program, args, { cwd, env: gitEnvironment(env), detached })
}

/** Stops what `startGit` has started: gently first, because git takes its locks away then. */
export async function stopGit(child: ChildProcessWithoutNullStreams): Promise<void> {
  const closed = once(child, 'close').catch(() => undefined)
  tell(child, 'SIGTERM')
  const wait = (ms: number) => after(ms, undefined, { ref: false })
  await Promise.race([closed, wait(STOP_MS)])
  // Also what git itself has left behind, which may keep its pipes open for long.
  tell(child, 'SIGKILL')
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
  await Promise.race([closed, wait(STOP_MS)])
}

function tell(child: ChildProcessWithoutNullStreams, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return
  if (!(LINUX || ownGroup() === undefined)) child.kill(signal)
  else attempt(() => process.kill(-child.pid!, signal), false)
}

/** What git prints, without the line's end; `illegal_move` with its own words when it fails. */
export async function git(cwd: string, args: string[], options: GitOptions = {}): Promise<string> {
  const said = await tryGit(cwd, args, options)
  if (said.code === 0) return said.out.replace(/\n$/, '')
  throw gitRefused(args, said)
}

/** For questions that git answers by its exit code: yes, or no. Any other code is no answer. */
export async function gitSays(cwd: string, args: string[], options?: GitOptions): Promise<boolean> {
  const said = await tryGit(cwd, args, options)
  if (said.code > 1) throw gitRefused(args, said)
  return said.code === 0
}

/** What git prints, as a list: of what is printed with `-z`, or of lines. */
export async function gitList(cwd: string, args: string[], options?: GitOptions) {
  const said = await git(cwd, args, options)
  return said.split(args.includes('-z') ? '\0' : '\n').filter((each) => each !== '')
}

/** The other way round: names for git to read, told apart as they are with `-z`. */
export const nulEnded = (names: string[]) => names.map((each) => `${each}\0`).join('')

/** A file by its name as git has it, byte by byte, and such a name for people: see `encoding`. */
export const fileNamed = (folder: string, name: string) =>
  Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, 'latin1')])
export const nameAsText = (name: string) => Buffer.from(name, 'latin1').toString()

/** What git would not do, in its own words. */
export function gitRefused(args: string[], { code, out, err }: GitSaid): Refusal {
  const said = shortLine((err.trim() || out.trim()).replaceAll('\n', '; '), 500)
  return new Refusal('illegal_move', `git ${args[0]} failed (exit ${code}): ${said}`, {
    next: 'See what git says there, and put it right.',
    details: { command: ['git', ...args].slice(0, 20), exit_code: code },
  })
}

const missing = (cwd: string) =>
  existsSync(cwd) ? 'git is not installed' : `there is no folder ${cwd}`

const notRun = (args: string[], why: string) =>
  new Refusal('unavailable', `git ${shown(args)} ${why}`, {
    details: { command: ['git', ...args].slice(0, 20) },
  })

/** What it is about, without our settings and its flags. */
function shown(args: string[]): string {
  const words = args.filter((word, i) => !word.startsWith('-') && args[i - 1] !== '-c')
  return shortLine(words.slice(0, 3).join(' '), 100)
}

function gitEnvironment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const ours = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  const who = Object.entries(WHO).flatMap(([name, value]) => [
    [`GIT_AUTHOR_${name}`, value],
    [`GIT_COMMITTER_${name}`, value],
  ])
  const mark = ownGroup()?.mark
  const quiet = {
    ...(mark !== undefined && { [MARK]: mark }),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
  }
  return { ...Object.fromEntries([...ours, ...who]), ...quiet, ...more }
}

/** A repository as seen from a folder in one of its checkouts. */
export interface Repository {
  /** What all of its worktrees share: the real path of `.git`. */
  common: string
  /** The top of the checkout around the folder. */
  top: string
  /** Where in that checkout the folder is; empty for its top. */
  inside: string
}

/**
 * The repository around `folder`. Refuses in words, with `invalid`, where no worktree can be made:
 * no repository, a bare one, or one without a commit.
 */
export async function repositoryAt(folder: string): Promise<Repository> {
  const args = ['rev-parse', '--is-bare-repository', '--git-common-dir', '--show-toplevel']
  const { code, out, err } = await tryGit(folder, args)
  const [bare, common = '', top = ''] = out.split('\n')
  if (bare === 'true') {
    throw unfit(`${folder} is a bare repository`, 'Give the project the path of a checkout of it.')
  }
  if (err.includes('dubious ownership')) {
    const trust = `git config --global --add safe.directory ${argument(folder)}`
    throw unfit(`${folder} belongs to another login. If you trust it: ${trust}`, trust)
  }
  if (code !== 0) {
    const why = err.includes('not a git repository') ? 'is not in a git repository' : err.trim()
    throw unfit(`${folder}: ${why}`, 'git init there, or switch worktrees off for this project.')
  }
  const { code: none } = await tryGit(folder, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'])
  if (none !== 0) throw unfit(`${top} has no commit yet`, 'Commit something first.')
  const inside = relative(realpathSync(top), realpathSync(folder))
  return { common: realpathSync(resolve(folder, common)), top: realpathSync(top), inside }
}

const unfit = (what: string, next: string) =>
  new Refusal('invalid', `No worktree can be made: ${shortLine(what, 500)}`, { next })

/** The commit that `name` stands for; undefined where there is none, and git has looked. */
export async function commitOf(
  cwd: string,
  name: string,
  options?: GitOptions,
): Promise<string | undefined> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]
  const said = await tryGit(cwd, args, options)
  if (said.code > 1) throw gitRefused(args, said)
  return said.code === 0 ? said.out.trim() : undefined
}

/** An empty tree has the same name in every repository. */
export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** What is not as the last commit has it, each path with git's two letters for how. */
export async function statusOf(cwd: string, options?: GitOptions, more: string[] = []) {
  const args = ['status', '--porcelain', '-z', '--no-renames', ...more]
  const entries = await gitList(cwd, args, options)
  return entries.map((entry) => ({ state: entry.slice(0, 2), path: entry.slice(3) }))
}

/** Keeps a commit that was landed as another one: put on top of what its target was. */
export const landedRef = (commit: string) => `refs/leasehold/landed/${commit}`
