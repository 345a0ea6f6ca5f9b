import { gitNow } from '../machine/git_quiet.ts'
import type { GitCommit, Discard } from './shell/effects.ts'

/** Since the hook began: there must be time left to ask and to answer. */
const GIT_UNTIL_MS = 3_500
/** Of a push only the newest commits are looked at. */
const COMMITS_MAX = 1_000

/** What git prints, split at NUL; nothing when it fails: then it will fail for the agent too. */
function askGit(dir: string, args: string[]): string[] {
  const said = gitNow(dir, args, { timeout_ms: GIT_UNTIL_MS - process.uptime() * 1000 }) ?? ''
  // Names after an empty format line begin with a line's end.
  return [...new Set(said.split('\0').map((name) => name.replace(/^\n+/, '')))].filter(Boolean)
}

/** Both names of what was moved are changed. */
const NAMES = ['--name-only', '-z', '--no-renames']

export const stagedPaths = (dir: string) => askGit(dir, ['diff', '--cached', ...NAMES])

/** The same without what is taken out. */
export const keptPaths = (dir: string) =>
  askGit(dir, ['diff', '--cached', '--diff-filter=d', ...NAMES])

/** What a commit would contain that is about to be made, relative to the top of the checkout. */
export function committedPaths({ dir, all, paths, added }: GitCommit): string[] {
  if (paths.length > 0) return askGit(dir, ['diff', ...NAMES, 'HEAD', '--', ...paths])
  const found = stagedPaths(dir)
  if (all) found.push(...askGit(dir, ['diff', ...NAMES]))
  if (added.length > 0) {
    found.push(...askGit(dir, ['diff', ...NAMES, '--', ...added]))
    found.push(...untracked(dir, added))
  }
  return [...new Set(found)]
}

/** What would be taken back or thrown away, relative to the top of the checkout. */
export function discardedPaths({ dir, what, matching = [':/'], ignored }: Discard): string[] {
  if (what === 'known') return askGit(dir, [...LISTED, '--', ...matching])
  const found: string[] = []
  if (what !== 'untracked')
    found.push(...askGit(dir, ['diff', ...NAMES, 'HEAD', '--', ...matching]))
  if (what !== 'tracked') found.push(...untracked(dir, matching, ignored !== undefined))
  return found
}

const LISTED = ['ls-files', '--full-name', '-z']

function untracked(dir: string, paths: string[], ignored = false): string[] {
  const those = ignored ? ['--others'] : ['--others', '--exclude-standard']
  return askGit(dir, [...LISTED, ...those, '--', ...paths])
}

/**
 * Paths of commits that no branch of a remote has yet. Where no remote was ever fetched from or
 * pushed to, nobody waits for these commits, and there is nothing to compare with.
 */
export function unpushedPaths(dir: string, commit: string, seen?: string): string[] {
  const args = [
    'log',
    ...NAMES,
    '--format=',
    '-n',
    String(COMMITS_MAX),
    commit,
    '--not',
    '--remotes',
  ]
  if (seen !== undefined && isCommit(dir, seen)) return askGit(dir, [...args, seen])
  const remotes = askGit(dir, ['for-each-ref', '--count=1', '--format=%(refname)', 'refs/remotes'])
  return remotes.length > 0 ? askGit(dir, args) : []
}

const isCommit = (dir: string, id: string) =>
  askGit(dir, ['cat-file', '-t', id])[0]?.trim() === 'commit'
