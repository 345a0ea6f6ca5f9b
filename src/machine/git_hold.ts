import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { startGit, stopGit } from './git.ts'
import { QUIET } from './git_quiet.ts'

/**
 * The locks are files: who makes one has it. What was made goes at the end, however that comes:
 * when its input ends, and so also when whoever started it is killed. The transaction of refs that
 * is under way is given up by git itself then.
 */
const HOLD = `n=0
drop() { for lock; do [ "$n" -gt 0 ] || break; rm -f -- "$lock"; n=$((n - 1)); done; }
trap 'drop "$@"' 0
trap 'exit 1' HUP INT TERM
why=$1; shift
for lock; do
  (set -C; : > "$lock") 2>/dev/null || { echo "locked: $lock"; exit 0; }
  n=$((n + 1))
done
echo 'locks: ok'
git ${QUIET.join(' ')} update-ref -m "$why" --stdin`

/** Long enough for a busy machine: what is done here takes milliseconds. */
const PATIENCE_MS = 30_000

interface HoldAsk {
  /** Where refs are moved from: its HEAD is locked too, if it is one of them. */
  cwd: string
  env: Record<string, string>
  /** Indexes of checkouts: nobody can commit, stage or switch there meanwhile. */
  locks: string[]
  why: string
}

/**
 * Locks of git that are held while other work is done, and one transaction of refs: verified and
 * locked first, and made to count at the end.
 */
export class GitHold {
  private said = ''
  err = ''
  private readonly over: Promise<unknown>

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    child.stdout.on('data', (chunk: Buffer) => void (this.said += String(chunk)))
    child.stderr.on('data', (chunk: Buffer) => void (this.err += String(chunk)))
    child.stdin.on('error', () => undefined)
    this.over = once(child, 'close').catch(() => undefined)
  }

  /** Or the lock that somebody else has. */
  static async open({ cwd, env, locks, why }: HoldAsk): Promise<GitHold | string> {
    const hold = new GitHold(startGit(cwd, '/bin/sh', ['-c', HOLD, 'hold', why, ...locks], env))
    if (await hold.hears(/^locks: ok$/m)) return hold
    const locked = /^locked: (.+)$/m.exec(hold.said)?.[1]
    await hold.end()
    return locked ?? hold.err
  }

  /** Locks refs, each as it is said to be; false where git will not, with its words in `err`. */
  prepare(asked: string[]): Promise<boolean> {
    this.child.stdin.write(`start\n${asked.join('\n')}\nprepare\n`)
    return this.hears(/^prepare: ok$/m)
  }

  commit(): Promise<boolean> {
    this.child.stdin.write('commit\n')
    return this.hears(/^commit: ok$/m)
  }

  /** Lets go of everything; what was not made to count is as it was. */
  async end(): Promise<void> {
    this.child.stdin.end()
    const late = setTimeout(() => void stopGit(this.child), PATIENCE_MS)
    await this.over
    clearTimeout(late)
  }

  private async hears(said: RegExp): Promise<boolean> {
    const late = setTimeout(() => void stopGit(this.child), PATIENCE_MS)
    let isOver = false
    void this.over.then(() => (isOver = true))
    while (!said.test(this.said) && !isOver) {
      await Promise.race([once(this.child.stdout, 'data'), this.over]).catch(() => undefined)
    }
    clearTimeout(late)
    return said.test(this.said)
  }
}
