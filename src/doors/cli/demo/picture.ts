import pc from 'picocolors'
import type { Scene } from './half.ts'

const WIDTH = 24
const PLAIN_EVERY_MS = 5_000
const COUNT_EVERY_MS = 300

/** Shows how it goes: lines that are drawn over on a terminal, a line now and then elsewhere. */
export class Picture {
  private lines = 0
  private shown_ms = 0
  private counted = { at_ms: -Infinity, text: '' }

  constructor(
    private readonly out: NodeJS.WriteStream,
    private readonly isQuiet: boolean,
  ) {}

  /** The start of a half, which takes a moment. */
  begin(title: string): void {
    this.lines = 0
    this.shown_ms = 0
    this.counted = { at_ms: -Infinity, text: '' }
    if (this.isQuiet) return
    if (this.out.isTTY) this.draw([`${pc.bold(title)}  ${pc.dim('starting…')}`])
    else this.say(`${title.trim()}:`)
  }

  say(text: string): void {
    if (!this.isQuiet) this.out.write(`${text}\n`)
  }

  show(title: string, duration_ms: number, scene: Scene): void {
    if (this.isQuiet) return
    const seconds = `${Math.round(scene.elapsed_ms / 1000)}/${duration_ms / 1000} s`
    const isFirst = scene.elapsed_ms - this.counted.at_ms >= COUNT_EVERY_MS
    if (isFirst) this.counted = { at_ms: scene.elapsed_ms, text: countText(scene) }
    if (!this.out.isTTY) {
      if (scene.elapsed_ms - this.shown_ms < PLAIN_EVERY_MS) return
      this.shown_ms = scene.elapsed_ms
      this.say(`  ${seconds}: ${countText(scene)}`)
      return
    }
    const part = Math.min(1, scene.elapsed_ms / duration_ms)
    const bar = '█'.repeat(Math.round(part * WIDTH)).padEnd(WIDTH, '░')
    const rows = scene.agents.map(
      ({ name, doing, edits }) =>
        `  ${name.padEnd(9)} ${String(edits).padStart(4)} edits  ${coloured(doing)}`,
    )
    this.draw([`${pc.bold(title)}  ${bar}  ${seconds}  ${this.counted.text}`, ...rows])
  }

  private draw(rows: string[]): void {
    const back = this.lines > 0 ? `\u001B[${this.lines}A` : ''
    this.out.write(back + rows.map((row) => `\u001B[2K${row}\n`).join(''))
    this.lines = rows.length
  }

  /** The picture gives way to what came of it. */
  end(): void {
    if (this.lines > 0) this.out.write(`\u001B[${this.lines}A\u001B[J`)
    this.lines = 0
  }
}

function countText({ tally }: Scene): string {
  const { edits_made, edits_lost, conflicts_prevented } = tally()
  const lost = edits_lost > 0 ? pc.red(`${edits_lost} lost`) : '0 lost'
  return `${edits_made} edits, ${lost}, ${conflicts_prevented} refused`
}

const coloured = (doing: string) => (doing.endsWith('work') ? pc.yellow(doing) : doing)
