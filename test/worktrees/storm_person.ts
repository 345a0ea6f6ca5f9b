import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../src/core/attempt.ts'
import type { Random } from '../simulation/random.ts'
import type { GitRepo } from '../support/git_repo.ts'

/** What a person writes over each commit. */
export const PERSON = 'By hand'

/**
 * Works in the main checkout while others land there: edits, stages, commits, changes ignored
 * files, switches branches. Never takes anything back; what was written stands in the ledger.
 */
export class Person {
  private words = 0
  /** What git would not let the person do: it is at work there, or something would be lost. */
  hindered = 0

  constructor(
    private readonly repo: GitRepo,
    private readonly ledger: string,
    private readonly random: Random,
  ) {}

  act(): void {
    const { random } = this
    const names = ['by hand.txt', `by hand ${this.words}`, 'by hand.log']
    this.write(random.pick(names))
    const then = random.below(6)
    if (then === 0) this.git('add', '--all')
    if (then === 1) this.commit('--all')
    if (then === 2 && this.git('add', '--all')) this.commit()
    if (then === 3) this.git('switch', '-q', '-c', `by-hand-${this.words}`)
    if (then === 4) this.git('switch', '-q', 'main')
  }

  /** Leaves nothing staged, which nobody could land under. False where git says no just now. */
  rest(): boolean {
    return this.git('switch', '-q', 'main') && this.git('add', '--all') && this.commit()
  }

  private write(name: string): void {
    const word = `word-person-${(this.words += 1)}-end\n`
    appendFileSync(join(this.repo.top, name), word)
    appendFileSync(this.ledger, word)
  }

  private commit(...flags: string[]): boolean {
    return this.git('commit', '-q', '--allow-empty', '-m', PERSON, ...flags)
  }

  private git(...args: string[]): boolean {
    const isDone = attempt(() => (this.repo.git(...args), true), false)
    if (!isDone) this.hindered += 1
    return isDone
  }
}
