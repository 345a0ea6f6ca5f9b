import type { LeaderBoard, LeaderRow } from '../port.ts'
import type { PostgresRead } from './counter.ts'
import type { Value } from './driver.ts'
import type { PostgresStatements } from './statements.ts'

/** The one row that says where the leader is. It is no part of what rules decide about. */
export function leaderBoardOf(read: PostgresRead, statements: PostgresStatements): LeaderBoard {
  const { findLeader, putLeader, clearLeader } = statements
  const change = (text: string, values: Value[]) =>
    read(
      async (db) => void (await db.query(text, values)),
      () => undefined,
    )
  return {
    read: () =>
      read(
        async (db) => {
          const [row] = await db.query(findLeader, [])
          if (!row) return undefined
          const [fence, address, secret, host, version] = row as string[]
          return { fence: Number(fence), address, secret, host, version } as LeaderRow
        },
        () => undefined,
      ),
    write: ({ fence, address, secret, host, version }) =>
      change(putLeader, [fence, address, secret, host, version]),
    clear: (fence) => change(clearLeader, [fence]),
  }
}
