import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RECORDINGS } from './recordings.ts'
import { type Cells, type Column, COLUMNS } from './trials.ts'

/** What runs of `npm run clients` have seen: the page is made of this, and of nothing else. */
export interface Results {
  clients: Record<string, { name: string; version: string; cells: Cells }>
  /** By the client that has the file, then by the one that wants it. */
  pairs: Record<string, Record<string, string>>
  /** By the kind that resumes and the one that has written since: `claude/codex`. */
  resumes: Record<string, { rounds: number; lost: number }>
  /** Of the twelve tasks, by seed: edits that agents were told of, and what went wrong. */
  stories?: Record<string, { kept: number; lost: number }>
}

const FILE = join(RECORDINGS, 'results.json')
const PAGE = join(import.meta.dirname, '../../docs/clients.md')
const BEGIN = '<!-- npm run clients: begin -->'
const END = '<!-- npm run clients: end -->'

export const readResults = () => JSON.parse(readFileSync(FILE, 'utf8')) as Results

const row = (first: string, cells: string[]) => `| ${[first].concat(cells).join(' | ')} |`

/** A row for each of `names`, a column for each of `heads`. */
function grid(
  corner: string,
  heads: Record<string, string>,
  names: Record<string, string>,
  cell: (name: string, head: string) => string | undefined,
): string {
  const keys = Object.keys(heads)
  const lines = Object.entries(names).map(([name, shown]) =>
    row(
      shown,
      keys.map((head) => cell(name, head) ?? 'not tried'),
    ),
  )
  const rule = row(
    '---',
    keys.map(() => '---'),
  )
  return [row(corner, Object.values(heads)), rule].concat(lines).join('\n')
}

/** The tables, as they stand between the marks. */
export function tables({ clients, pairs, resumes, stories = {} }: Results): string {
  const named = Object.entries(clients).map(([kind, { name }]) => [kind, name] as const)
  const versions = Object.entries(clients).map(([kind, { name, version }]) => {
    return [kind, `${name} ${version}`] as const
  })
  const seen = grid('', Object.fromEntries(versions), COLUMNS, (column, kind) => {
    return clients[kind]?.cells[column as Column]
  })
  const paired = Object.fromEntries(named.filter(([kind]) => pairs[kind]))
  const both = grid('has the file ↓, wants it →', paired, paired, (first, second) => {
    return pairs[first]?.[second]
  })
  const nameOf = (kind: string) => clients[kind]?.name ?? kind
  const resumed = Object.entries(resumes).map(
    ([between, { rounds, lost }]) =>
      `${between.split('/').map(nameOf).join(' after ')}: ${lost} lost in ${rounds} rounds`,
  )
  return `${seen}

Two agents, one file: the second is refused, the file stays as it is, and its model reads why.

${both}

An agent that resumes and writes a whole file from memory, over an edit that another made since:
${resumed.join('; ') || 'not tried'}.

Twelve tasks over files that overlap, by all clients at once in one checkout, one of them killed or
stopped in each round: ${toldOf(stories)}.`
}

function toldOf(stories: Results['stories'] & {}): string {
  const all = Object.values(stories)
  if (all.length === 0) return 'not tried'
  const sum = (of: 'kept' | 'lost') => all.reduce((n, each) => n + each[of], 0)
  return `${sum('lost')} lost of ${sum('kept')} edits in ${all.length} tellings`
}

export function page(text: string, results: Results): string {
  const [before, after] = [text.split(BEGIN)[0]!, text.split(END)[1]!]
  return `${before}${BEGIN}\n${tables(results)}\n${END}${after}`
}

/** Puts results of this run beside those of earlier ones, and both on the page. */
export function writeResults(change: (results: Results) => void): void {
  const results = readResults()
  change(results)
  writeFileSync(FILE, `${JSON.stringify(results, undefined, 2)}\n`)
  writeFileSync(PAGE, page(readFileSync(PAGE, 'utf8'), results))
}

export const pageText = () => readFileSync(PAGE, 'utf8')
