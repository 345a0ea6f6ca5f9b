import { readFileSync } from 'node:fs'
import { Client } from 'pg'
import { callerOf } from './claims.ts'
import { claimUntil, direct, fillPostgres, type Kind, openPostgres } from './postgres_claims.ts'
import { type Bench, startBench } from './postgres_server.ts'
import { printTable, progress } from './report.ts'

const CALLERS = 128
const TASKS = 20_000
const PAIRS = 8_000
/** Before anything is counted: code is compiled and statements are planned. */
const WARM_PAIRS = 4_000
const US_PER_TICK = 10_000

interface TableCounts {
  inserted: number
  updated: number
  /** Of the updated ones, those that wrote no entry into an index. */
  hot: number
  deleted: number
  /** Entries that were written into its indexes, as far as WAL tells. */
  entries: number
  wal_bytes: number
}

/** Per claim and completion. Other work on the machine changes none of it but the times. */
interface Costs {
  kind: Kind
  server_us: number
  client_us: number
  wal_bytes: number
  sent_bytes: number
  received_bytes: number
  commits: number
  tables: Record<string, TableCounts>
}

/** What a claim and its completion cost: 128 callers in one process, alone on the database. */
export async function measureCosts(): Promise<Costs[]> {
  const bench = await startBench()
  try {
    const all: Costs[] = []
    for (const kind of ['plain', 'queue'] as const) {
      progress(`counting ${kind}`)
      await bench.template(kind, (url) => fillPostgres(url, kind, TASKS))
      all.push(await countOne(bench, kind))
    }
    progress('')
    return all
  } finally {
    await bench.stop()
  }
}

async function countOne(bench: Bench, kind: Kind): Promise<Costs> {
  const url = await bench.copyOf(kind)
  const db = new Client(url)
  await db.connect()
  await db.query('CREATE EXTENSION pg_walinspect')
  const store = openPostgres(url)
  await claimPairs(store, kind, WARM_PAIRS)
  const before = await look(db)
  const done = await claimPairs(store, kind, PAIRS)
  const after = await look(db)
  const tables = await writtenIn(db, before.lsn, after.lsn)
  await store.close()
  await db.end()
  await bench.drop(url)
  const per = (of: (seen: Seen) => number) => (of(after) - of(before)) / done
  const each = Object.entries(tables).map(([name, counts]) => {
    const parts = Object.entries(counts).map(([part, n]) => [part, n / done])
    return [name, Object.fromEntries(parts) as TableCounts]
  })
  return {
    kind,
    server_us: per(({ server_us }) => server_us),
    client_us: per(({ client_us }) => client_us),
    wal_bytes: per(({ wal_bytes }) => wal_bytes),
    sent_bytes: per(({ sent }) => sent),
    received_bytes: per(({ received }) => received),
    commits: per(({ commits }) => commits),
    tables: Object.fromEntries(each) as Record<string, TableCounts>,
  }
}

async function claimPairs(store: ReturnType<typeof openPostgres>, kind: Kind, pairs: number) {
  let left = pairs
  const deciding = direct(store, kind)
  const isOver = () => (left -= 1) < 0
  const counts = await Promise.all(
    Array.from({ length: CALLERS }, (_, i) => claimUntil(deciding, callerOf(i), { isOver })),
  )
  return counts.reduce((a, b) => a + b, 0)
}

interface Seen {
  lsn: string
  wal_bytes: number
  commits: number
  server_us: number
  client_us: number
  sent: number
  received: number
}

async function look(db: Client): Promise<Seen> {
  const { rows } = await db.query<{ lsn: string; bytes: string; commits: string; pids: number[] }>(
    `SELECT pg_current_wal_lsn() AS lsn, (pg_current_wal_lsn() - '0/0')::text AS bytes,
       (SELECT commits::text FROM leasehold.head) AS commits,
       (SELECT array_agg(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'leasehold') AS pids`,
  )
  const { lsn, bytes, commits, pids } = rows[0]!
  const { user, system } = process.cpuUsage()
  // oxlint-disable-next-line no-underscore-dangle -- nothing else names the sockets of a driver
  const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
  const sockets = handles
    .map((each) => each as { bytesWritten?: number; bytesRead?: number; remotePort?: number })
    .filter(({ remotePort }) => remotePort !== undefined)
  const sum = (of: 'bytesWritten' | 'bytesRead') =>
    sockets.reduce((all, socket) => all + (socket[of] ?? 0), 0)
  return {
    lsn,
    wal_bytes: Number(bytes),
    commits: Number(commits),
    server_us: pids.reduce((all, pid) => all + ticksOf(pid), 0) * US_PER_TICK,
    client_us: user + system,
    sent: sum('bytesWritten'),
    received: sum('bytesRead'),
  }
}

/** Of processor time. The name, which may have spaces, ends with the last parenthesis. */
function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return Number(fields[11]) + Number(fields[12])
}

const WRITTEN = `
  SELECT coalesce(t.relname, c.relname) AS name,
    sum(b.block_data_length + b.block_fpi_length + 12)::float8 AS wal_bytes,
    count(*) FILTER (WHERE b.resource_manager = 'Btree' AND b.record_type LIKE 'INSERT%')
      AS entries,
    count(*) FILTER (WHERE b.record_type = 'UPDATE' AND b.block_id = 0) AS updated,
    count(*) FILTER (WHERE b.record_type = 'HOT_UPDATE') AS hot,
    count(*) FILTER (WHERE b.resource_manager = 'Heap' AND b.record_type = 'DELETE') AS deleted,
    count(*) FILTER (WHERE b.resource_manager = 'Heap' AND b.record_type LIKE 'INSERT%') AS inserted
  FROM pg_get_wal_block_info($1, $2, false) AS b
  JOIN pg_class AS c ON pg_relation_filenode(c.oid) = b.relfilenode
  LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
  LEFT JOIN pg_class AS t ON t.oid = i.indrelid
  WHERE b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
  GROUP BY 1 ORDER BY wal_bytes DESC`

/** By table, from the log of the server itself. */
async function writtenIn(db: Client, from: string, to: string): Promise<Costs['tables']> {
  const { rows } = await db.query<Record<string, string>>(WRITTEN, [from, to])
  const each = rows.map(({ name, ...counts }) => [
    name,
    {
      inserted: Number(counts['inserted']),
      updated: Number(counts['updated']) + Number(counts['hot']),
      hot: Number(counts['hot']),
      deleted: Number(counts['deleted']),
      entries: Number(counts['entries']),
      wal_bytes: Number(counts['wal_bytes']),
    },
  ])
  return Object.fromEntries(each) as Costs['tables']
}

export function printCosts(all: Costs[]): void {
  for (const { kind, tables, ...costs } of all) {
    console.log(`A claim and its completion, ${kind}:`)
    const rest = Object.entries(costs).map(([name, n]) => [name, n.toFixed(n < 10 ? 3 : 0)])
    printTable([['', 'per pair'], ...rest])
    const names = ['inserted', 'updated', 'hot', 'deleted', 'entries', 'wal_bytes'] as const
    const rows = Object.entries(tables).filter(([, { wal_bytes }]) => wal_bytes >= 1)
    const each = rows.map(([name, counts]) =>
      [name].concat(names.map((of) => counts[of].toFixed(2))),
    )
    printTable([['table', ...names], ...each])
  }
}
