import { spawnSync } from 'node:child_process'

/** A fenced block of a page. */
export interface Block {
  /** `docs/init.md:7`, to click on. */
  at: string
  language: string
  lines: string[]
  /** What the HTML comment before it says: why it is not run, or where. */
  unrun: string | undefined
  machine: string
}

const FENCE = /^(\s*)```(\w*)\s*$/
const NOTE = /^\s*<!-- (not run|on): (.+?) -->\s*$/

export function blocksOf(path: string, text: string): Block[] {
  const found: Block[] = []
  const lines = text.split('\n')
  let notes: Record<string, string> = {}
  for (let i = 0; i < lines.length; i++) {
    const note = NOTE.exec(lines[i]!)
    if (note) notes[note[1]!] = note[2]!
    const fence = FENCE.exec(lines[i]!)
    if (fence) {
      const [, indent = '', language = ''] = fence
      const start = i + 1
      do i += 1
      while (i < lines.length && !/^\s*```\s*$/.test(lines[i]!))
      const inside = lines.slice(start, i).map((line) => line.slice(indent.length))
      const { 'not run': unrun, on: machine = 'a' } = notes
      found.push({ at: `${path}:${start}`, language, lines: inside, unrun, machine })
    }
    if (!note && lines[i]!.trim() !== '') notes = {}
  }
  return found
}

/** One command of a block, the code it must exit with, and what it must print, if that is shown. */
export interface Step {
  at: string
  machine: string
  text: string
  exit: number
  shown: string | undefined
}

/** A shell knows best where a command ends. */
const isWhole = (text: string) =>
  !text.endsWith('\\') && spawnSync('bash', ['-n', '-c', text]).status === 0

/** `# refused` and `# exits 6` say that a command is meant to fail. */
function exitOf(text: string): number {
  if (/\s# refused/.test(text)) return 5
  return Number(/\s# exits (\d+)/.exec(text)?.[1] ?? 0)
}

export function stepsOf({ at, lines, language, machine }: Block): Step[] {
  return language === 'console' ? transcript(at, machine, lines) : commands(at, machine, lines)
}

function commands(at: string, machine: string, lines: string[]): Step[] {
  const steps: Step[] = []
  let text = ''
  for (const line of lines) {
    text = text === '' ? line : `${text}\n${line}`
    if (text.trim() === '' || !isWhole(text)) continue
    steps.push({ at, machine, text, exit: exitOf(text), shown: undefined })
    text = ''
  }
  if (text.trim() !== '') throw new Error(`${at} ends within a command: ${text}`)
  return steps
}

/** `$ command`, then what it prints. A refusal that is shown exits with 5. */
function transcript(at: string, machine: string, lines: string[]): Step[] {
  const steps: Step[] = []
  for (const line of lines) {
    if (line.startsWith('$ ')) {
      const text = line.slice(2)
      steps.push({ at, machine, text, exit: exitOf(text), shown: '' })
    } else {
      const step = steps.at(-1)!
      step.shown = step.shown === '' ? line : `${step.shown}\n${line}`
      if (line.startsWith('error: ')) step.exit ||= 5
    }
  }
  return steps
}

/** Whether this was printed: `…` stands for anything, and lines may be broken elsewhere. */
export function isShown(shown: string, printed: string): boolean {
  const exactly = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  const parts = shown.split('…').map((part) => exactly(part).replaceAll(/\s+/g, String.raw`\s+`))
  return new RegExp(`^${parts.join('[^]*')}$`).test(printed.trim())
}
