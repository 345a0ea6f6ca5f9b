import { Refusal } from '../../core/refusal.ts'

/** A name of 0.1.0, if these words are one: how it is said now. */
interface Renamed {
  from: string
  to: string
}

/** Understood for one more release; a flag stands behind the command that had it. */
const RENAMED: Renamed[] = [
  { from: 'dashboard', to: 'up --link' },
  { from: 'top', to: 'status --watch' },
  { from: 'init --agent', to: 'init --client' },
  { from: 'event list --by', to: 'event list --by-agent' },
]

const GONE: Record<string, string> = {
  man: 'Every command has it: leasehold task --help',
  service: 'A systemd unit does it: docs/install.md has one.',
}

/**
 * The words as they are said now, `tell` being told of each that has changed. Refuses (`invalid`)
 * what is no more, with what to do instead.
 */
export function saidNow(argv: string[], tell: (what: string) => void): string[] {
  const begin = behindGlobals(argv)
  const [before, said] = [argv.slice(0, begin), argv.slice(begin)]
  const [first = ''] = said
  const instead = Object.hasOwn(GONE, first) ? GONE[first] : undefined
  if (instead !== undefined) {
    throw new Refusal('invalid', `leasehold ${first} is no more`, { next: instead })
  }
  for (const { from, to } of RENAMED) {
    const words = from.split(' ')
    const flag = words.find((word) => word.startsWith('-'))
    const head = flag === undefined ? words : words.slice(0, -1)
    if (head.some((word, i) => said[i] !== word)) continue
    const at = flag === undefined ? 0 : said.findIndex((each) => each.split('=')[0] === flag)
    if (at < 0) continue
    tell(`leasehold ${from} is now: leasehold ${to}`)
    const now = to.split(' ')
    if (flag === undefined) return [...before, ...now, ...said.slice(head.length)]
    return [...before, ...said.with(at, said[at]!.replace(flag, now.at(-1)!))]
  }
  return argv
}

/** Where the command begins: behind the flags that every command has. */
function behindGlobals(argv: string[]): number {
  const isAgent = (i: number) => argv[i] === '--agent'
  const begin = argv.findIndex((each, i) => !each.startsWith('-') && !isAgent(i - 1))
  return begin < 0 ? argv.length : begin
}
