import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { drain, type Bench, rateOf } from './postgres_server.ts'
import { printTable, progress, whole } from './report.ts'

const CALLERS = 128
const LOOK_MS = 5_000
/** `BLOAT_MINUTES=10` is the run that the issue asks for. */
const MINUTES = Number(process.env['BLOAT_MINUTES'] ?? 1)
/** The part of the time that is worked: less than all where others use the machine too. */
const DUTY = Number(process.env['BLOAT_DUTY'] ?? 1)

interface Look {
  /** Since the transaction was opened. */
  minutes: number
  /** Per second there, and in a copy beside it that nobody holds up. */
  rate: number
  control: number
  dead_rows: number
}

export interface Bloat {
  minutes: number
  duty: number
  looks: Look[]
  /** Part of the control's rate that is lost per minute, and per million dead rows. */
  per_minute: number
  per_million: number
}

/**
 * How claims get slower while somebody keeps a transaction open, so that no dead row is cleared. A
 * few tasks go round: whoever completes one adds the next, so the queue stays as long as it was.
 * A copy of the database without such a transaction is worked in turn, so that what others do on
 * the machine counts for both.
 */
export async function measureBloat(bench: Bench, quick: boolean): Promise<Bloat> {
  const minutes = quick ? Math.min(MINUTES, 1) : MINUTES
  const [url, control] = [await bench.copyOf('queue'), await bench.copyOf('queue')]
  const [idle, stats] = [new Client(url), new Client(url)]
  for (const client of [idle, stats]) {
    // If the server goes away, the next look says so.
    client.on('error', () => undefined)
    await client.connect()
  }
  await idle.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await idle.query('SELECT count(*) FROM leasehold.task')
  const looks: Look[] = []
  const began_ms = performance.now()
  const since = () => (performance.now() - began_ms) / 60_000
  while (since() < minutes) {
    progress(`a transaction left open: ${since().toFixed(1)} of ${minutes} minutes`)
    const rate = await work(url)
    const { rows } = await stats.query<{ dead: string }>(
      'SELECT sum(n_dead_tup)::text AS dead FROM pg_stat_user_tables',
    )
    const look = { minutes: since(), rate, dead_rows: Number(rows[0]!.dead) }
    looks.push({ ...look, control: await work(control) })
    await pause(2 * LOOK_MS * (1 / DUTY - 1))
  }
  await idle.query('ROLLBACK')
  for (const client of [idle, stats]) await client.end()
  for (const each of [url, control]) await bench.drop(each)
  const against = (at: (look: Look) => number) =>
    slopeOf(looks.map((look) => [at(look), look.rate / look.control]))
  const per_minute = against((look) => look.minutes)
  const per_million = against((look) => look.dead_rows / 1e6)
  return { minutes, duty: DUTY, looks, per_minute, per_million }
}

async function work(url: string): Promise<number> {
  const args = ['postgres_claims', 'round', url, String(CALLERS), String(LOOK_MS)]
  return rateOf(await drain({ args, processes: 1 }))
}

/** Of the line that is nearest to all points. */
function slopeOf(points: [number, number][]): number {
  const mean = (of: (point: [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point[0]), mean((point) => point[1])]
  const spread = mean((point) => (point[0] - x) ** 2)
  return spread === 0 ? 0 : mean((point) => (point[0] - x) * (point[1] - y)) / spread
}

export function printBloat({ minutes, duty, looks, per_minute, per_million }: Bloat): void {
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`
  console.log(`A transaction left open for ${minutes} min, at work ${percent(duty)} of the time:`)
  const each = looks.map(({ minutes: at, rate, control, dead_rows }) => [
    `${at.toFixed(1)} min`,
    whole(rate),
    whole(control),
    (rate / control).toFixed(2),
    whole(dead_rows),
  ])
  printTable([['', 'per second', 'without', 'ratio', 'dead rows'], ...each])
  console.log(`Slope of the ratio: ${percent(per_minute)} per minute,`)
  console.log(`${percent(per_million)} per million dead rows.`)
}
