import type { LeaderBoard, LeaderRow } from '../port.ts'
import type { PostgresRead } from './counter.ts'

/** The one row that says where the leader is. It is no part of what rules decide about. */
export function leaderBoardOf(read: PostgresRead, schema: string): LeaderBoard {
  const find = `SELECT fence, address, secret, host, version FROM ${schema}.leader
    WHERE address <> ''`
  const put = `INSERT INTO ${schema}.leader AS l (fence, address, secret, host, version)
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (one) DO UPDATE SET fence = excluded.fence,
    address = excluded.address, secret = excluded.secret, host = excluded.host,
    version = excluded.version WHERE l.fence < excluded.fence`
  const clear = `UPDATE ${schema}.leader SET address = '', secret = '' WHERE fence = $1`
  return {
    read: () =>
      read(
        async (db) => {
          const [row] = await db.query(find, [])
          if (!row) return undefined
          const [fence, address, secret, host, version] = row as string[]
          return { fence: Number(fence), address, secret, host, version } as LeaderRow
        },
        () => undefined,
      ),
    write: ({ fence, address, secret, host, version }) =>
      read(
        async (db) => void (await db.query(put, [fence, address, secret, host, version])),
        () => undefined,
      ),
    clear: (fence) =>
      read(
        async (db) => void (await db.query(clear, [fence])),
        () => undefined,
      ),
  }
}
