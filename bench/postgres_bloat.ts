import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { drain, type Bench, rateOf } from './postgres_server.ts'
import { printTable, progress, whole } from './report.ts'

const CALLERS = 128
const LOOK_MS = 8_000
/** `BLOAT_MINUTES=10` is the run that the issue asks for. */
const MINUTES = Number(process.env['BLOAT_MINUTES'] ?? 1)
/** The part of the time that is worked: less than all where others use the machine too. */
const DUTY = Number(process.env['BLOAT_DUTY'] ?? 1)

interface Look {
  /** Since the transaction was opened. */
  minutes: number
  rate: number
  dead_rows: number
}

interface Bloat {
  minutes: number
  duty: number
  /** Without anybody in the way, just before and some time after. */
  before: number
  after: number
  looks: Look[]
  /** Of the rate at the start, lost per million dead rows and per minute. */
  per_million: number
  per_minute: number
}

/**
 * How claims get slower while somebody keeps a transaction open, so that no dead row is cleared. A
 * few tasks go round: whoever completes one adds the next, so the queue stays as long as it was.
 */
export async function measureBloat(bench: Bench, quick: boolean): Promise<Bloat> {
  const minutes = quick ? Math.min(MINUTES, 1) : MINUTES
  const url = await bench.copyOf('queue')
  const work = async () => {
    const args = ['postgres_claims', 'round', url, String(CALLERS), String(LOOK_MS)]
    return rateOf(await drain({ args, processes: 1 }))
  }
  const before = await work()
  const idle = new Client({ connectionString: url })
  await idle.connect()
  await idle.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await idle.query('SELECT count(*) FROM leasehold.task')
  const looks: Look[] = []
  const began_ms = performance.now()
  const since = () => (performance.now() - began_ms) / 60_000
  while (since() < minutes) {
    progress(`a transaction left open: ${since().toFixed(1)} of ${minutes} minutes`)
    const rate = await work()
    const { rows } = await idle.query<{ dead: string }>(
      'SELECT sum(n_dead_tup)::text AS dead FROM pg_stat_user_tables',
    )
    looks.push({ minutes: since(), rate, dead_rows: Number(rows[0]!.dead) })
    await pause(LOOK_MS * (1 / DUTY - 1))
  }
  await idle.query('ROLLBACK')
  await idle.end()
  const after = await work()
  await bench.drop(url)
  const per_million = slopeOf(looks.map(({ dead_rows, rate }) => [dead_rows / 1e6, rate / before]))
  const per_minute = slopeOf(looks.map((look) => [look.minutes, look.rate / before]))
  return { minutes, duty: DUTY, before, after, looks, per_million, per_minute }
}

/** Of the line that is nearest to all points. */
function slopeOf(points: [number, number][]): number {
  const mean = (of: (point: [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point[0]), mean((point) => point[1])]
  const spread = mean((point) => (point[0] - x) ** 2)
  return spread === 0 ? 0 : mean((point) => (point[0] - x) * (point[1] - y)) / spread
}

export function printBloat(bloat: Bloat): void {
  const { minutes, duty, before, after, looks, per_million, per_minute } = bloat
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`
  console.log(`A transaction left open for ${minutes} min, at work ${percent(duty)} of the time:`)
  const each = looks.map((look) => [
    `${look.minutes.toFixed(1)} min`,
    whole(look.rate),
    whole(look.dead_rows),
  ])
  printTable([
    ['', 'per second', 'dead rows'],
    ['before', whole(before), ''],
    ...each,
    ['ended', whole(after), ''],
  ])
  console.log(
    `Slope: ${percent(per_minute)} of the first rate per minute, ` +
      `${percent(per_million)} per million dead rows.`,
  )
}
