import { execFile } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { Crew, random } from './crew.ts'

const LONG = process.env['FAULTS'] === 'long'
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const BRANCHES = Number(process.env['RUNS'] ?? (LONG ? 300 : 10))
const WHO = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org']
const run = promisify(execFile)

// reason: a person thinks now and then, at random; what comes of it is judged, not when
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Somebody who works in the main checkout all the while: one thing after the other. */
class Person {
  readonly count: Record<string, number> = {}
  readonly lines: string[] = []
  private refused = ''
  private readonly below

  constructor(
    private readonly top: string,
    seed: number,
  ) {
    this.below = random(seed)
  }

  /** Git may say no: somebody else is at work in the checkout. Then it is tried another time. */
  private async git(...args: string[]): Promise<boolean> {
    const done = await run('git', [...WHO, ...args], { cwd: this.top }).catch((error: Error) => {
      this.refused = error.message
    })
    const what = `${args[0]} ${done ? 'done' : 'refused'}`
    this.count[what] = (this.count[what] ?? 0) + 1
    return done !== undefined
  }

  /** What is written is in the ledger, and nothing of it may get lost. */
  private write(name: string): void {
    const line = `line-${this.lines.length}-end`
    appendFileSync(join(this.top, name), `${line}\n`)
    this.lines.push(line)
  }

  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      if (this.below(3) > 0) await pause(this.below(1500))
      this.write(['a.txt', 'mine.txt', 'mine.log'][this.below(3)]!)
      const what = this.below(5)
      if (what === 0) await this.git('add', 'a.txt', 'mine.txt')
      else if (what === 1) await this.git('commit', '-qam', 'Mine')
      else if (what === 2) await this.commitAll()
      else if (what === 3) await this.visit()
    }
    await this.home()
  }

  private async commitAll(): Promise<boolean> {
    return (await this.git('add', '--all')) && this.git('commit', '-qm', 'Mine too')
  }

  /** To a branch of their own and back, and at work again at once. */
  private async visit(): Promise<void> {
    await this.commitAll()
    if (!(await this.git('switch', '-q', 'theirs'))) return
    this.write('theirs.txt')
    await this.commitAll()
    if (!(await this.home())) return
    this.write('a.txt')
    await this.git('commit', '-qam', 'Back')
  }

  /** A few times: what is in the way of somebody for good is a fault. */
  private async home(): Promise<boolean> {
    for (let i = 0; i < 100; i += 1) {
      if (await this.git('switch', '-q', 'main')) return this.commitAll()
      await this.commitAll()
    }
    throw new Error(`a person cannot get back to main: ${this.refused}`)
  }
}

test(
  `nothing that is landed is taken back by a person who works there, nor lost (seed ${SEED})`,
  async () => {
    const crew = new Crew({ together: 2 }, 0)
    const { repo, top } = crew.scene
    const begun = { 'a.txt': '', 'mine.txt': '', 'theirs.txt': '' }
    repo.commit('Ignore', { '.gitignore': '.leasehold/\n*.log\n', ...begun })
    appendFileSync(join(top, 'mine.log'), '')
    repo.git('branch', 'theirs')
    const asked = await crew.work(BRANCHES)
    const person = new Person(top, SEED)
    let isOver = false
    const working = person.work(() => isOver)
    await crew.start()
    const landings = await crew.over(asked, BRANCHES * 10_000).finally(async () => {
      isOver = true
      // Also when it fails: nobody goes on in a folder that is gone.
      await working
    })
    const landed = landings.filter(({ status }) => status === 'landed')
    process.stdout.write(
      `seed ${SEED}: ${landed.length} of ${BRANCHES} landed, ${person.lines.length} lines, ` +
        `${JSON.stringify(person.count)}\n`,
    )
    const reasons = landings.flatMap(({ status, reason }) => (status === 'landed' ? [] : [reason]))
    for (const reason of reasons) expect(reason).toMatch(/check failed|shared\.txt/)
    const removed = repo.git('log', '--diff-filter=D', '--name-only', '--format=', 'main')
    expect(removed).toBe('')
    const files = crew.scene.files()
    for (const { task_id } of landed) expect(files).toContain(`f${task_id!.slice(1)}`)
    for (const { candidate } of landed) repo.git('merge-base', '--is-ancestor', candidate!, 'main')
    const kept = [
      ...['a.txt', 'mine.txt'].map((name) => repo.git('show', `main:${name}`)),
      repo.git('show', 'theirs:theirs.txt'),
      readFileSync(join(top, 'mine.log'), 'utf8'),
    ].join('\n')
    const all = new Set(kept.split('\n'))
    expect(person.lines.filter((line) => !all.has(line))).toEqual([])
    expect(repo.git('status', '--porcelain')).toBe('')
  },
  LONG ? 3_600_000 : 120_000,
)
