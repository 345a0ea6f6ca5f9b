import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A repository for a test: made by git itself, with none of the settings of who runs the test. */
export class GitRepo {
  constructor(readonly top: string) {}

  /** What git says; throws when it fails. */
  git(...args: string[]): string {
    return gitIn(this.top, ...args)
  }

  /** Writes files, by path; returns this. */
  write(files: Record<string, string | Buffer>): this {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(this.top, path)), { recursive: true })
      writeFileSync(join(this.top, path), content)
    }
    return this
  }

  /** Commits all that is there, and `files` with it; returns the commit. */
  commit(message: string, files: Record<string, string | Buffer> = {}): string {
    this.write(files).git('add', '--all')
    this.git('commit', '--quiet', '--allow-empty', '--no-verify', '--message', message)
    return this.head()
  }

  head(name = 'HEAD'): string {
    return this.git('rev-parse', '--verify', name)
  }

  /** Every ref and what it points at. */
  refs(pattern = 'refs'): Record<string, string> {
    const lines = this.git('for-each-ref', '--format=%(refname) %(objectname)', pattern).split('\n')
    return Object.fromEntries(
      lines.filter(Boolean).map((line) => line.split(' ') as [string, string]),
    )
  }
}

/** A new repository in `top` with one commit on `main`, and our state folder ignored. */
export function gitRepo(
  top: string,
  files: Record<string, string> = { 'a.txt': 'one\n' },
): GitRepo {
  mkdirSync(top, { recursive: true })
  gitIn(top, 'init', '--quiet', '--initial-branch', 'main')
  const repo = new GitRepo(top)
  repo.commit('Begin', { '.gitignore': '.leasehold/\n', ...files })
  return repo
}

/** Runs git in a folder, as a person whose only setting is a name. */
export function gitIn(cwd: string, ...args: string[]): string {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  const who = { NAME: 'Ada', EMAIL: 'ada@example.org' }
  const names = Object.entries(who).flatMap(([name, value]) => [
    [`GIT_AUTHOR_${name}`, value],
    [`GIT_COMMITTER_${name}`, value],
  ])
  const none = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null', LC_ALL: 'C' }
  const env = { ...Object.fromEntries([...kept, ...names]), ...none }
  const options = { cwd, env, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 28 } as const
  return execFileSync('git', args, options).replace(/\n$/, '')
}
