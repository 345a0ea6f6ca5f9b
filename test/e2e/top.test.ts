import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { servingPlace, startDaemon, unseen } from '../doors/serving.ts'
import { CLI, type Running, type Sandbox, until } from '../support/processes.ts'

const TERMINAL = fileURLToPath(new URL('terminal.py', import.meta.url))
const ESC = '\u001b'
const ROWS = 24
const COLUMNS = 100

/** A terminal as far as `top` needs one: what stands on its lines now. */
class Terminal {
  readonly running: Running

  constructor(place: Sandbox, columns = COLUMNS) {
    const size = [String(ROWS), String(columns)]
    const program = ['python3', TERMINAL, ...size, process.execPath, CLI]
    this.running = place.start(['top'], { program })
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

describe('top', () => {
  test('shows what others do as they do it, and does what keys ask for, after asking', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const screen = new Terminal(place)
    await screen.shows(/Nothing runs/)
    await daemon.ok('lock.acquire', { names: [`git${ESC}[31m`.replace(ESC, '')], agent: 'ada' })
    await screen.shows(/^  git\[31m +ada +\d+m/)
    await daemon.ok('task.create', { id: 'T1', title: 'Mend\u202e it' })
    await daemon.ok('task.claim', { id: 'T1', agent: 'bob' })
    expect(await screen.shows(/^  T1 +bob/)).toContain('Mend it')
    screen.press(`${ESC}[B${ESC}OB`)
    await screen.shows(/^> git/)
    screen.press('r')
    await screen.shows(/Take git\[31m from its holder\?.*y\/n/)
    screen.press('n')
    await screen.shows(/Nothing was done/)
    expect((await daemon.ok('lock.status', { name: 'git[31m' })).is_locked).toBe(true)
    screen.press('ry')
    await screen.shows(/force-released git\[31m, which ada held/)
    expect((await daemon.ok('lock.status', { name: 'git[31m' })).is_locked).toBe(false)
    screen.press('kc')
    await screen.shows(/Cancel task T1 \(Mend it\)\?/)
    screen.press('y')
    await screen.shows(/cancelled task T1/)
    await screen.shows(/Nothing runs/)
    screen.press('q')
    const { code, out } = await screen.running.ended
    expect(code).toBe(0)
    expect(out).toContain(`${ESC}[?1049h`)
    expect(out.trimEnd().endsWith(`${ESC}[?25h${ESC}[?1049l`)).toBe(true)
  })

  test('fits into a narrow terminal, explains, and gives it back at the end', async () => {
    const place = servingPlace()
    await place.ok(['task', 'add', `Long ${'x'.repeat(200)}`, '--id', 'T1'])
    await place.ok(['task', 'claim', 'T1', '--agent', 'ada'])
    const screen = new Terminal(place, 44)
    await screen.shows(/^  T1/)
    for (const line of screen.lines) expect(line.length, line).toBeLessThanOrEqual(44)
    screen.press('je')
    await screen.shows(/Task T1 is running/)
    screen.press('q?')
    await screen.shows(/quit/)
    // Without a daemon it sees what another process writes to the store.
    screen.press('q')
    await place.ok(['lock', 'acquire', 'other', '--agent', 'eve'])
    await screen.shows(/^  other/)
    screen.press('\u0003')
    const { code, out } = await screen.running.ended
    expect(code).toBe(0)
    expect(out).toContain(`${ESC}[?1049l`)
  })

  test('names its keys in 80 columns and 24 lines, of which none wraps', async () => {
    const place = servingPlace()
    await place.ok(['task', 'add', 'Mend the gate', '--id', 'T1', '--user', 'ada'])
    await place.ok(['task', 'claim', 'T1', '--agent', 'coder:T1.1'])
    const screen = new Terminal(place, 80)
    // The task is said beside it.
    await screen.shows(/^  T1 +coder +ada +/)
    await screen.shows(
      /^[^>]*select   c cancel   r release   e explain   f follow   \? keys   q quit/,
    )
    expect(screen.lines).toHaveLength(ROWS)
    screen.press('?')
    await screen.shows(/quit$/)
    // Six keys, each in a line of its own, below a title; and the way back.
    expect(screen.lines.filter((line) => line.trim() !== '')).toHaveLength(8)
  })

  test('prints once where there is no terminal, and as data', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['a'], agent: 'ada' })
    const { code, out } = await place.cli(['top'])
    expect(code).toBe(0)
    expect(out).toMatch(/^leasehold .* 1 lock  /)
    expect(out).not.toContain(ESC)
    const now = await unseen(place, () => place.ok(['top']))
    expect(now).toMatchObject({ running: [], locks: [{ name: 'a', holder: 'ada', waiters: [] }] })
  })
})
