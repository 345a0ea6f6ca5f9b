import { Client } from 'pg'
import { drain, type Bench, rateOf } from './postgres_server.ts'
import { progress, whole } from './report.ts'

const CALLERS = 128
const MINUTES = Number(process.env['BLOAT_MINUTES'] ?? 1)
const LOOK_MS = 8_000

interface Bloat {
  minutes: number
  /** Per second, with the transaction just opened and after so many minutes of work. */
  first: number
  last: number
  dead_rows: number
}

/**
 * How claims get slower while somebody keeps a transaction open, so that no dead row is cleared. A
 * few tasks go round: whoever completes one adds the next, so the queue stays as long as it was.
 */
export async function measureBloat(bench: Bench, quick: boolean): Promise<Bloat> {
  const minutes = quick ? Math.min(MINUTES, 1) : MINUTES
  const url = await bench.copyOf('queue')
  const idle = new Client({ connectionString: url })
  await idle.connect()
  await idle.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await idle.query('SELECT count(*) FROM leasehold.task')
  const rates: number[] = []
  for (const until_ms = performance.now() + minutes * 60_000; performance.now() < until_ms;) {
    progress(`a transaction left open: ${rates.length * (LOOK_MS / 1000)} s`)
    const args = ['postgres_claims', 'round', url, String(CALLERS), String(LOOK_MS)]
    rates.push(rateOf(await drain({ args, processes: 1 })))
  }
  const { rows } = await idle.query<{ dead: string }>(
    'SELECT sum(n_dead_tup)::text AS dead FROM pg_stat_user_tables',
  )
  await idle.query('ROLLBACK')
  await idle.end()
  await bench.drop(url)
  return { minutes, first: rates[0]!, last: rates.at(-1)!, dead_rows: Number(rows[0]!.dead) }
}

export function printBloat({ minutes, first, last, dead_rows }: Bloat): void {
  const percent = ((last / first - 1) * 100).toFixed(0)
  console.log(
    `A transaction left open for ${minutes} min: ${whole(first)} per second at first, ` +
      `${whole(last)} at the end (${percent} %), ${whole(dead_rows)} dead rows.`,
  )
}
