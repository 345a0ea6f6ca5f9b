import { REFUSALS } from '../../../core/refusal.ts'
import { VERSION } from '../../../machine/version.ts'
import type { KnownCommand } from './commands.ts'
import { NOUNS, PROGRAM } from './help.ts'

/** The manual page, for `man`: what `--help` says of every command, on one page. */
export function manPage(known: KnownCommand[]): string {
  const [root, ...commands] = known as [KnownCommand, ...KnownCommand[]]
  const parts = [
    `.TH LEASEHOLD 1 "" ${quoted(`leasehold ${VERSION}`)} "User Commands"`,
    '.SH NAME',
    `leasehold \\- ${roff(PROGRAM.about)}`,
    '.SH SYNOPSIS',
    '.B leasehold',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    literal(PROGRAM.examples),
    '.SH OPTIONS',
    ...flagsOf(root),
    '.SH COMMANDS',
    ...commands.flatMap((command) => sectionOf(command)),
    '.SH EXIT STATUS',
    ...exits().flatMap(([code, about]) => ['.TP', String(code), roff(about)]),
    '.SH ENVIRONMENT',
    ...ENVIRONMENT.flatMap(([name, about]) => ['.TP', `.B ${name}`, roff(about)]),
  ]
  return `${parts.join('\n')}\n`
}

const ENVIRONMENT = [
  ['LEASEHOLD_DIR', 'The folder of the state, instead of the nearest .leasehold/.'],
  ['LEASEHOLD_STORE', 'Another store: sqlite:PATH, file:FOLDER or postgres://…'],
  ['LEASEHOLD_AGENT', 'Who is asking, where --agent is not given.'],
  ['LEASEHOLD_LOCK, LEASEHOLD_FENCE', 'The lock that run holds, and its fence.'],
  ['LEASEHOLD_URL, LEASEHOLD_TOKEN', 'A server, and the token to use instead of the store.'],
] as const

function sectionOf(command: KnownCommand): string[] {
  const { path, about, usage, isForPeople } = command
  const noun = path.length === 1 ? NOUNS[path[0]!] : undefined
  return [
    `.SS ${quoted(roff(['leasehold', ...path, usage].join(' ')))}`,
    roff(isForPeople ? `${about} For people: no agent may.` : about),
    ...(noun ? [literal(noun.examples)] : []),
    ...flagsOf(command),
  ]
}

function flagsOf({ flags }: KnownCommand): string[] {
  return flags.flatMap(({ flag, takes, about }) => {
    return ['.TP', `.B ${roff(takes ? `${flag} ${takes}` : flag)}`, roff(about)]
  })
}

/** From the table of refusals: what a command exits with, and why. */
function exits(): [number, string][] {
  const codes = new Map<number, string[]>([
    [0, ['it was done']],
    [6, ['a claim found nothing ready']],
  ])
  for (const [code, { exit }] of Object.entries(REFUSALS)) {
    codes.set(exit, [...(codes.get(exit) ?? []), code])
  }
  return [...codes]
    .map(([code, names]) => [code, names.join(', ')] as [number, string])
    .toSorted(([a], [b]) => a - b)
}

const quoted = (text: string) => `"${text.replaceAll('"', String.raw`\(dq`)}"`

const literal = (text: string) => `.PP\n.nf\n${text.trim().split('\n').map(roff).join('\n')}\n.fi`

/** A line that begins with a dot or a quote would be an instruction; a plain dash, a hyphen. */
function roff(text: string): string {
  const safe = text.replaceAll('\\', String.raw`\e`).replaceAll('-', String.raw`\-`)
  return safe.replace(/^(?=[.'])/, String.raw`\&`).replaceAll(/[^\p{ASCII}]/gu, (letter) => {
    return `\\[u${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`
  })
}
