import { git, REMOTE_MS } from '../../machine/git.ts'

/** A remote has its own patience. */
export const FAR = { timeout_ms: REMOTE_MS }

/** A branch of a remote as a ref of ours: no ref of the person's changes, of remotes or tags. */
export async function fetchBranch(cwd: string, remote: string, branch: string, to: string) {
  const ours = ['--quiet', '--no-tags', '--no-write-fetch-head', '--refmap=']
  await git(cwd, ['fetch', ...ours, remote, `+refs/heads/${branch}:${to}`], FAR)
}

/** As one part of a ref: git has no `release` beside `release/1.0`. */
export const flat = (name: string) => encodeURIComponent(name)

/** Where the present state of a target stands: here, or as it was last fetched. */
export const nameOf = (target: string, remote: string | null) =>
  remote === null ? `refs/heads/${target}` : `refs/leasehold/target/${flat(remote)}/${flat(target)}`
