import pc from 'picocolors'
import type { Now } from '../../../core/stats/now.ts'
import { Refusal } from '../../../core/refusal.ts'
import * as locks from '../../../operations/locks.ts'
import * as queue from '../../../operations/queue.ts'
import * as stats from '../../../operations/stats.ts'
import * as tasks from '../../../operations/tasks.ts'
import { readOutput } from '../../../machine/run_output.ts'
import { folderOf } from '../../../stores/open.ts'
import { watchChanges } from './changes.ts'
import type { Context } from '../context.ts'
import { refuseWithToken } from '../family.ts'
import { print, show } from '../show/show.ts'
import { clock } from '../show/table.ts'
import { clean, fit } from '../show/width.ts'
import { type Choice, choicesIn, frame, keyOfChoice } from './frame.ts'
import { Screen } from './screen.ts'
import { io } from '../../io.ts'

const ROWS_MAX = 200
const WIDTH_ELSEWHERE = 120
/** Many things may happen at once; they are looked at together. */
const REST_MS = 200
const TICK_MS = 1_000
/** What is stuck gets older without anything happening. */
const STUCK_MS = 5_000
const LAST_LINE_BYTES = 4 * 1024
const LOG_BYTES = 64 * 1024

const KEYS = '↑↓ select   c cancel   r release   e explain   f follow   ? keys   q quit'
const KEYS_SHORT = '↑↓  c cancel  r release  e explain  f follow  ? q'
const HELP = [
  '↑ ↓ or k j     choose a running task or a lock',
  'c              cancel the chosen task; its command is stopped first',
  'r              force-release the chosen lock, or that of the chosen task',
  'e              why it is not running, or who holds it and who waits',
  'f or enter     what the chosen run prints, as it comes; q goes back',
  'q or Ctrl-C    quit',
]

/** The Now view: live in a terminal, once elsewhere, as data with `--json`. */
export async function top(context: Context): Promise<void> {
  const now = await context.call(stats.now, { limit: ROWS_MAX })
  if (context.json) return show(context, 'now.get', now)
  if (io().stdout.isTTY && io().stdin.isTTY) return new Live(context, now).run()
  const width = io().stdout.columns || Number(context.env['COLUMNS']) || WIDTH_ELSEWHERE
  const shown = { now, wall_ms: Date.parse(now.at), width, height: undefined, chosen: undefined }
  const lines = frame({ ...shown, store: storeOf(context), lastLine: lastLineIn(context) })
  print(
    lines
      .map((line) => line.trimEnd())
      .join('\n')
      .trimEnd(),
  )
}

const storeOf = ({ place }: Context) => `${place.kind} ${place.path}`

/** With a token the files of the store are not ours to read. */
function lastLineIn(context: Context): (run_id: string) => string {
  if (context.env['LEASEHOLD_TOKEN']) return () => ''
  const folder = folderOf(context.place)
  return (run_id) => lastLines(folder, run_id, LAST_LINE_BYTES).at(-1) ?? ''
}

const BACK = new Set(['q', 'f', '?', '\r', '\u001b'])

type Mode =
  | { name: 'list' }
  | { name: 'confirm'; question: string; act: () => Promise<string> }
  | { name: 'text'; title: string; lines: string[] }
  | { name: 'log'; run_id: string }

class Live {
  private readonly screen = new Screen()
  private readonly lastLine: (run_id: string) => string
  /** What the store's clock is ahead of ours, so that countdowns end when leases do. */
  private ahead_ms: number
  private chosen: string | undefined
  private mode: Mode = { name: 'list' }
  private message = ''
  private looking: Promise<void> | undefined
  private again = false
  private quit!: () => void

  constructor(
    private readonly context: Context,
    private now: Now,
  ) {
    this.ahead_ms = Date.parse(now.at) - Date.now()
    this.lastLine = lastLineIn(context)
  }

  async run(): Promise<void> {
    const { stdin, stdout } = process
    const over = new Promise<void>((resolve) => (this.quit = resolve))
    const keys = (bytes: Buffer) => {
      for (const key of keysIn(bytes.toString('utf8'))) this.press(key)
    }
    const resized = () => {
      this.screen.forget()
      this.draw()
    }
    this.screen.enter()
    stdin.setRawMode(true).on('data', keys).resume()
    stdout.on('resize', resized)
    const stop = watchChanges(this.context, () => this.look())
    const tick = setInterval(() => this.tick(), TICK_MS)
    this.draw()
    try {
      await over
    } finally {
      clearInterval(tick)
      stop()
      stdout.off('resize', resized)
      stdin.off('data', keys).setRawMode(false).pause()
      this.screen.leave()
      await this.looking
    }
  }

  private tick(): void {
    const age_ms = Date.now() + this.ahead_ms - Date.parse(this.now.at)
    if (this.now.stuck.length > 0 && age_ms >= STUCK_MS) this.look()
    this.draw()
  }

  /** Looks anew; what happens meanwhile makes it look once more. */
  private look(): void {
    this.again = true
    this.looking ??= this.lookOn().finally(() => (this.looking = undefined))
  }

  private async lookOn(): Promise<void> {
    while (this.again) {
      this.again = false
      try {
        this.now = await this.context.call(stats.now, { limit: ROWS_MAX })
        this.ahead_ms = Date.parse(this.now.at) - Date.now()
      } catch (error) {
        this.message = pc.red(clean((error as Error).message))
      }
      this.draw()
      await new Promise<void>((resolve) => void setTimeout(resolve, REST_MS))
    }
  }

  private get choice(): Choice | undefined {
    return choicesIn(this.now).find((each) => keyOfChoice(each) === this.chosen)
  }

  private draw(): void {
    const { width, height } = this.screen
    const body = this.body(width, height - 2)
    while (body.length < height - 2) body.push('')
    const { mode } = this
    const said =
      mode.name === 'confirm' ? pc.yellow(fit(`${mode.question}  y/n`, width)) : this.message
    const all = KEYS.length > width ? KEYS_SHORT : KEYS
    const keys = mode.name === 'list' || mode.name === 'confirm' ? all : 'q back'
    this.screen.draw([...body.slice(0, height - 2), said, pc.dim(fit(keys, width))])
  }

  private body(width: number, height: number): string[] {
    const { mode, now, chosen, lastLine } = this
    if (mode.name === 'text') {
      return [
        pc.bold(fit(mode.title, width)),
        '',
        ...mode.lines.flatMap((line) => wrap(line, width)),
      ]
    }
    if (mode.name === 'log') {
      const lines = lastLines(folderOf(this.context.place), mode.run_id, LOG_BYTES)
      const head = pc.bold(fit(`output of ${mode.run_id}`, width))
      const none = lines.length === 0 ? [pc.dim('It has printed nothing here yet.')] : []
      return [
        head,
        '',
        ...none,
        ...lines.slice(2 - height).map((line) => fit(line, width).trimEnd()),
      ]
    }
    const wall_ms = Date.now() + this.ahead_ms
    return frame({ now, wall_ms, width, height, chosen, lastLine, store: storeOf(this.context) })
  }

  private press(key: string): void {
    this.message = ''
    if (key === '\u0003') return this.quit()
    if (this.mode.name === 'confirm') this.answer(key, this.mode.act)
    else if (this.mode.name === 'list') this.choose(key)
    else if (BACK.has(key)) this.mode = { name: 'list' }
    this.draw()
  }

  private choose(key: string): void {
    const { choice } = this
    if (key === 'q') this.quit()
    else if (key === '\u001b[A' || key === 'k') this.move(-1)
    else if (key === '\u001b[B' || key === 'j') this.move(1)
    else if (key === '?') this.mode = { name: 'text', title: 'keys', lines: HELP }
    else if (!choice) this.message = 'Choose something first: ↓'
    else if (key === 'c') this.cancel(choice)
    else if (key === 'r') this.release(choice)
    else if (key === 'e') void this.explain(choice)
    else if (key === 'f' || key === '\r') this.follow(choice)
  }

  private move(step: 1 | -1): void {
    const keys = choicesIn(this.now).map(keyOfChoice)
    if (keys.length === 0) return
    const at = this.chosen === undefined ? -1 : keys.indexOf(this.chosen)
    const next = at < 0 ? (step === 1 ? 0 : keys.length - 1) : at + step
    this.chosen = keys[Math.min(keys.length - 1, Math.max(0, next))]
  }

  private get admin() {
    return { caller: { ...this.context.caller, admin: true } }
  }

  private cancel(choice: Choice): void {
    if (choice.kind === 'lock') {
      this.message = 'A lock is not cancelled: r force-releases it.'
      return
    }
    const { id, title } = choice
    const act = async () => {
      await this.context.call(queue.cancel, { id }, this.admin)
      return `cancelled task ${id}`
    }
    const question = `Cancel task ${id} (${title})? What runs is stopped, then its lock is free.`
    this.mode = { name: 'confirm', question, act }
  }

  private release(choice: Choice): void {
    const name = choice.kind === 'lock' ? choice.id : `task:${choice.id}`
    const act = async () => {
      const input = { name, reason: 'from leasehold top' }
      const { holder } = await this.context.call(locks.forceReleaseLock, input, this.admin)
      return `force-released ${name}, which ${holder} held`
    }
    const question = `Take ${name} from its holder? It can write no more under this lease.`
    this.mode = { name: 'confirm', question, act }
  }

  private answer(key: string, act: () => Promise<string>): void {
    this.mode = { name: 'list' }
    if (key !== 'y') {
      this.message = 'Nothing was done.'
      return
    }
    this.message = 'working…'
    void this.doIt(act)
  }

  private async doIt(act: () => Promise<string>): Promise<void> {
    try {
      this.message = pc.green(await act())
    } catch (error) {
      this.refused(error)
    }
    this.look()
  }

  private refused(error: unknown): void {
    const { message } = error as Error
    const next = error instanceof Refusal && error.next ? ` ${error.next}` : ''
    this.message = pc.red(clean(message + next))
    this.draw()
  }

  private async explain(choice: Choice): Promise<void> {
    try {
      const { sentence } =
        choice.kind === 'task'
          ? await this.context.call(tasks.explain, { id: choice.id })
          : await this.lockSentence(choice.id)
      this.mode = { name: 'text', title: `${choice.kind} ${choice.id}`, lines: [sentence] }
    } catch (error) {
      this.refused(error)
    }
    this.draw()
  }

  private async lockSentence(name: string): Promise<{ sentence: string }> {
    const status = await this.context.call(locks.lockStatus, { name })
    const { lock_holder, lock_expires_at, acquired_at, waiters } = status
    if (!status.is_locked) return { sentence: `${name} is free.` }
    const times = `since ${clock(acquired_at)}, until ${clock(lock_expires_at)}`
    const held = `${name} is held by ${lock_holder} ${times}`
    const line = waiters
      .map(({ agent, asked_at }) => `${agent} (since ${clock(asked_at)})`)
      .join(', ')
    return { sentence: `${held}. ${line === '' ? 'Nobody waits.' : `In line: ${line}.`}` }
  }

  private follow(choice: Choice): void {
    const run_id = choice.kind === 'task' ? choice.run_id : null
    if (run_id === null) {
      this.message = 'A lock prints nothing: choose a running task.'
      return
    }
    try {
      refuseWithToken(this.context.env)
      this.mode = { name: 'log', run_id }
    } catch (error) {
      this.refused(error)
    }
  }
}

/** Keys that came together, one by one; an arrow is three characters, or one of a few others. */
function keysIn(text: string): string[] {
  const keys: string[] = []
  for (let at = 0; at < text.length; at += keys.at(-1)!.length) {
    const isArrow = /^.[[O][A-D]/s.test(text.slice(at)) && text[at] === '\u001b'
    keys.push(isArrow ? text.slice(at, at + 3).replace('O', '[') : text[at]!)
  }
  return keys
}

/** A sentence over several lines, broken between words. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of clean(text).split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line)
      line = ''
    }
    line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].map((each) => fit(each, width).trimEnd())
}

/** The end of what a run has printed, as lines; none if it runs elsewhere or was silent. */
function lastLines(stateFolder: string, run_id: string, bytes: number): string[] {
  const output = readOutput(stateFolder, run_id, {}, bytes)
  return output ? output.text.trimEnd().split(/\r?\n|\r/) : []
}
