import pc from 'picocolors'
import { clean, fit } from './show/width.ts'

const ESC = '\u001b['
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`

const CTRL_C = 3
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

  /** Draws again and again, until q or Ctrl-C. What fails is told there, and is tried again. */
  async show(
    every_ms: number,
    lines: (width: number, height: number) => Promise<string[]>,
  ): Promise<void> {
    const { stdin } = process
    let quit = () => {}
    const over = new Promise<void>((resolve) => (quit = resolve))
    const isOver = over.then(() => true)
    const keys = (bytes: Buffer) =>
      bytes.includes('q') || bytes.includes(CTRL_C) ? quit() : undefined
    const resized = () => this.forget()
    this.enter()
    stdin.setRawMode(true).on('data', keys).resume()
    this.out.on('resize', resized)
    try {
      for (let ended = false; !ended;) {
        const [width, height] = [this.out.columns || 80, this.out.rows || 24]
        const body = await lines(width, height - 2).catch((error: Error) => [
          pc.red(fit(clean(error.message), width)),
        ])
        while (body.length < height - 1) body.push('')
        this.draw([...body.slice(0, height - 1), pc.dim(fit('q quit', width))])
        let timer: NodeJS.Timeout | undefined
        const pause = new Promise<false>((resolve) => {
          timer = setTimeout(() => resolve(false), every_ms)
        })
        ended = await Promise.race([isOver, pause])
        clearTimeout(timer)
      }
    } finally {
      this.out.off('resize', resized)
      stdin.off('data', keys).setRawMode(false).pause()
      this.leave()
    }
  }

  private enter(): void {
    this.open = true
    this.out.write(ENTER)
    process.on('exit', this.restore)
    for (const signal of Object.keys(SIGNALS)) process.on(signal, this.signalled)
  }

  private leave(): void {
    if (!this.open) return
    this.open = false
    this.out.write(LEAVE)
    process.off('exit', this.restore)
    for (const signal of Object.keys(SIGNALS)) process.off(signal, this.signalled)
  }

  /** The terminal has another size: nothing of what was there can be relied on. */
  private forget(): void {
    this.shown = []
    this.out.write(`${ESC}2J`)
  }

  private draw(lines: string[]): void {
    let text = ''
    for (const [i, line] of lines.entries()) {
      if (line !== this.shown[i]) text += `${ESC}${i + 1};1H${ESC}K${line}${ESC}0m`
    }
    this.shown = lines
    if (text !== '') this.out.write(text)
  }
}
