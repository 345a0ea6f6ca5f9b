import { readFileSync, writeFileSync } from 'node:fs'
import { Counts } from './counts.ts'

/** A run of the rig in numbers, as it is kept and shown. */
export interface Summary {
  seed: number
  minutes: number
  worlds: number
  kills: number
  kills_by_role: Record<string, number>
  pauses_past_ttl: number
  pauses_by_role: Record<string, number>
  power_losses: number
  damage_cases: number
  damage_detected: number
  /** Of those detected: told by `db check` alone, after which writes stop. */
  damage_by_check: number
  damage_harmless: number
  calls: number
  acknowledged: number
  acknowledged_lost: number
  overlaps: number
  longest_wait_ms: number
  longest_wait: string
  violations: { where: string; check: string; says: string }[]
  faults: Record<string, number>
  figures: Record<string, number>
  skipped: Record<string, string>
}

const LOSS = new Set(['nothing acknowledged is lost', 'no task lost, invented or ended twice'])
const OVERLAP = new Set(['nobody is robbed', 'stale writes are refused', 'fences rise'])

export function summaryOf(
  counts: Counts,
  run: Pick<Summary, 'seed' | 'minutes' | 'worlds'>,
): Summary {
  const { violations, figures } = counts
  const of = (checks: Set<string>) => violations.filter(({ check }) => checks.has(check)).length
  return {
    ...run,
    kills: Counts.sum(counts.kills),
    kills_by_role: Object.fromEntries(counts.kills),
    pauses_past_ttl: Counts.sum(counts.pauses),
    pauses_by_role: Object.fromEntries(counts.pauses),
    power_losses: figures.get('power losses') ?? 0,
    damage_cases: figures.get('damage cases') ?? 0,
    damage_detected:
      (figures.get('damage detected') ?? 0) + (figures.get('damage found by db check') ?? 0),
    damage_by_check: figures.get('damage found by db check') ?? 0,
    damage_harmless: figures.get('damage harmless') ?? 0,
    calls: figures.get('calls') ?? 0,
    acknowledged: figures.get('acknowledged') ?? 0,
    acknowledged_lost: of(LOSS),
    overlaps: of(OVERLAP),
    longest_wait_ms: Math.round(counts.wait_ms_max),
    longest_wait: counts.wait_says,
    violations,
    faults: Object.fromEntries(counts.faults),
    figures: Object.fromEntries(figures),
    skipped: Object.fromEntries(counts.skipped),
  }
}

/** Lines for people: what happened, and what was found. */
export function tableOf(summary: Summary): string {
  const list = (of: Record<string, number>) =>
    Object.entries(of)
      .toSorted((a, b) => b[1] - a[1])
      .map(([name, n]) => `${name} ${n}`)
      .join(', ')
  const rows: [string, string | number][] = [
    ['seed', summary.seed],
    ['minutes', summary.minutes.toFixed(1)],
    ['worlds', summary.worlds],
    ['kill -9', `${summary.kills} (${list(summary.kills_by_role)})`],
    ['pauses past a TTL', `${summary.pauses_past_ttl} (${list(summary.pauses_by_role)})`],
    ['power losses', summary.power_losses],
    [
      'damage cases',
      `${summary.damage_cases}: ${summary.damage_detected} detected, ` +
        `${summary.damage_harmless} harmless`,
    ],
    ['disks that gave up after I/O errors', summary.figures['disks that gave up'] ?? 0],
    ['calls', `${summary.calls}, ${summary.acknowledged} acknowledged`],
    ['acknowledged and lost', summary.acknowledged_lost],
    ['overlaps by fence', summary.overlaps],
    ['longest wait that could have been served', `${summary.longest_wait_ms} ms`],
    ['violations', summary.violations.length],
  ]
  for (const [what, why] of Object.entries(summary.skipped)) rows.push([`skipped: ${what}`, why])
  return rows.map(([name, value]) => `| ${name} | ${value} |`).join('\n')
}

const [BEGIN, END] = ['<!-- rig: begin -->', '<!-- rig: end -->'] as const

/** Puts the table between its marks in a page. */
export function writeDocs(path: string, summary: Summary): void {
  const page = readFileSync(path, 'utf8')
  const [before, rest] = page.split(BEGIN) as [string, string | undefined]
  const after = rest?.split(END)[1]
  if (after === undefined) throw new Error(`${path} has no place for the figures (${BEGIN})`)
  const table = `| | |\n|---|---|\n${tableOf(summary)}`
  writeFileSync(path, `${before}${BEGIN}\n${table}\n${END}${after}`)
}
