const ESC = '\u001b['
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`

const SIGNALS = { SIGTERM: 15, SIGHUP: 1, SIGINT: 2 } as const

/**
 * The other screen of the terminal, written line by line where lines have changed: nothing
 * flickers. However the program ends, the terminal is left as it was found.
 */
export class Screen {
  private shown: string[] = []
  private open = false
  private readonly out = process.stdout
  private readonly restore = () => this.leave()
  private readonly signalled = (signal: NodeJS.Signals) => {
    this.leave()
    process.exit(128 + SIGNALS[signal as keyof typeof SIGNALS])
  }

  enter(): void {
    this.open = true
    this.out.write(ENTER)
    process.on('exit', this.restore)
    for (const signal of Object.keys(SIGNALS)) process.on(signal, this.signalled)
  }

  leave(): void {
    if (!this.open) return
    this.open = false
    this.out.write(LEAVE)
    process.off('exit', this.restore)
    for (const signal of Object.keys(SIGNALS)) process.off(signal, this.signalled)
  }

  get width(): number {
    return this.out.columns || 80
  }

  get height(): number {
    return this.out.rows || 24
  }

  /** The terminal has another size: nothing of what was there can be relied on. */
  forget(): void {
    this.shown = []
    this.out.write(`${ESC}2J`)
  }

  draw(lines: string[]): void {
    const visible = lines.slice(0, this.height)
    let text = ''
    for (const [i, line] of visible.entries()) {
      if (line !== this.shown[i]) text += `${ESC}${i + 1};1H${ESC}K${line}${ESC}0m`
    }
    if (visible.length < this.shown.length) text += `${ESC}${visible.length + 1};1H${ESC}J`
    this.shown = visible
    if (text !== '') this.out.write(text)
  }
}
