import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { servingPlace, startDaemon, unseen } from '../doors/serving.ts'
import { CLI, type Running, type Sandbox, until } from '../support/processes.ts'

const TERMINAL = fileURLToPath(new URL('terminal.py', import.meta.url))
const ESC = '\u001b'
const ROWS = 24
const COLUMNS = 100

/** A terminal as far as `status --watch` needs one: what stands on its lines now. */
class Terminal {
  readonly running: Running

  constructor(place: Sandbox, columns = COLUMNS) {
    const size = [String(ROWS), String(columns)]
    const program = ['python3', TERMINAL, ...size, process.execPath, CLI]
    this.running = place.start(['status', '--watch'], { program })
    onTestFinished(async () => {
      this.running.kill('SIGKILL')
      await this.running.ended
    })
  }

  press(keys: string): void {
    this.running.child.stdin!.write(keys)
  }

  get lines(): string[] {
    const shown: string[] = []
    // Each change is: go to the line, clear it, its text.
    for (const part of this.running.out.split(`${ESC}[`)) {
      const [, at, text] = /^(\d+);1H(.*)$/s.exec(part) ?? []
      if (at !== undefined) shown[(this.at = Number(at) - 1)] = text!
      else if (part.startsWith('K')) shown[this.at] = part.slice(1)
      else if (part.startsWith('J')) shown.splice(this.at)
    }
    return Array.from(shown, (line) => line ?? '')
  }

  private at = 0

  shows(pattern: RegExp): Promise<string> {
    return until(`${pattern} in ${this.running.out.slice(-3000)}`, () =>
      this.lines.find((line) => pattern.test(line)),
    )
  }
}

describe('status', () => {
  test('goes on showing what others do, and gives the terminal back', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const screen = new Terminal(place)
    await screen.shows(/Nothing runs/)
    await daemon.ok('lock.acquire', { names: [`git${ESC}[31m`.replace(ESC, '')], agent: 'ada' })
    await screen.shows(/^  git\[31m +ada +\d+m/)
    await daemon.ok('task.create', { id: 'T1', title: 'Mend\u202e it', user: 'eve' })
    await daemon.ok('task.claim', { id: 'T1', agent: 'coder:T1.1' })
    // The task is said beside it.
    expect(await screen.shows(/^  T1 +coder +eve +/)).toContain('Mend it')
    expect(screen.lines).toHaveLength(ROWS)
    await daemon.ok('task.status', { id: 'T1', status: 'done', agent: 'coder:T1.1' })
    await screen.shows(/Nothing runs/)
    screen.press('q')
    const { code, out } = await screen.running.ended
    expect(code).toBe(0)
    expect(out).toContain(`${ESC}[?1049h`)
    expect(out.trimEnd().endsWith(`${ESC}[?25h${ESC}[?1049l`)).toBe(true)
  })

  test('fits into a narrow terminal, and sees what another writes to the store', async () => {
    const place = servingPlace()
    await place.ok(['task', 'add', `Long ${'x'.repeat(200)}`, '--id', 'T1'])
    await place.ok(['task', 'claim', 'T1', '--agent', 'ada'])
    const screen = new Terminal(place, 44)
    await screen.shows(/^  T1/)
    for (const line of screen.lines) expect(line.length, line).toBeLessThanOrEqual(44)
    await place.ok(['lock', 'acquire', 'other', '--agent', 'eve'])
    await screen.shows(/^  other/)
    screen.press('\u0003')
    const { code, out } = await screen.running.ended
    expect(code).toBe(0)
    expect(out).toContain(`${ESC}[?1049l`)
  })

  test('says once what is stuck and what can be done, and all of it as data', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['a'], agent: 'ada' })
    const { code, out } = await place.cli(['status'])
    expect(code).toBe(0)
    expect(out).toMatch(/^leasehold .* 1 lock  /)
    expect(out).not.toContain(ESC)
    await daemon.ok('queue.pause', {})
    expect((await place.cli(['status'])).out).toMatch(/STUCK\n.*paused.*\n +next: .*queue resume/)
    const now = await unseen(place, () => place.ok(['status']))
    expect(now).toMatchObject({ running: [], locks: [{ name: 'a', holder: 'ada', waiters: [] }] })
  })

  test('is what top was', async () => {
    const { err, out } = await servingPlace().cli(['top'])
    expect(out).toMatch(/^leasehold /)
    expect(err).toBe('note: leasehold top is now: leasehold status --watch\n')
  })
})
