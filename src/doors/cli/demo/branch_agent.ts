import { appendFileSync, readFileSync } from 'node:fs'
import { commit, git } from './repository.ts'
import { LATE, lineOf } from './words.ts'

/**
 * An agent in a git worktree of its own, started by the dispatcher of the demo: it adds a line to
 * the file that its prompt names, and commits. Told that this came back, it takes what is there now
 * first, and adds its line to that.
 */
const LOOK_AGAIN_MS = 50
const PATIENCE_MS = 30_000

async function work(): Promise<void> {
  const prompt = readFileSync(0, 'utf8')
  const [file = ''] = prompt.split('\n')
  const task = process.env['LEASEHOLD_TASK'] ?? ''
  const isAgain = prompt.includes('came back')
  if (isAgain && !git('.', 'merge', '--quiet', '--no-commit', 'main')) {
    git('.', 'checkout', '--theirs', '--', file)
  }
  appendFileSync(file, `${lineOf(task)}\n`)
  commit('.', `Add the line of ${task}`)
  if (isAgain) return
  // It thinks for so long that another agent lands meanwhile, who began when it had begun.
  if (task === LATE) await until(() => !git('.', 'merge-base', '--is-ancestor', 'main', 'HEAD'))
  else await until(() => git('.', 'rev-parse', '--quiet', '--verify', `leasehold/${LATE}-1`))
}

async function until(isSo: () => boolean): Promise<void> {
  const until_ms = performance.now() + PATIENCE_MS
  while (!isSo() && performance.now() < until_ms) {
    await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS))
  }
}

void work()
