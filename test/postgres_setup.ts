import { startPostgres } from './support/postgres_server.ts'

/** Once per run of the tests: a server for all files, unless `DATABASE_URL` names one. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['DATABASE_URL']) return undefined
  const server = await startPostgres()
  process.env['DATABASE_URL'] = server.url
  return () => server.stop()
}
