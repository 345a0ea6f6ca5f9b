import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { daemonOn } from '../support/daemons.ts'
import { postgresUrl } from '../support/postgres.ts'
import { sandbox } from '../support/processes.ts'

/** Puts the rows of a schema back to what they were, as a dump or a standby that lagged would. */
async function putBackLater(url: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: process.env['DATABASE_URL'] })
  await client.connect()
  onTestFinished(() => client.end())
  const { schema } = addressOf(url)
  const named = `SELECT tablename AS name FROM pg_tables WHERE schemaname = $1`
  const { rows } = await client.query<{ name: string }>(named, [schema])
  const all = (text: (name: string) => string) =>
    client.query(`BEGIN; ${rows.map(({ name }) => text(name)).join(';')}; COMMIT`)
  await all((name) => `CREATE TEMP TABLE "${name}" AS SELECT * FROM "${schema}"."${name}"`)
  return async () => {
    await all((name) => {
      const table = `"${schema}"."${name}"`
      return `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM pg_temp."${name}"`
    })
  }
}

test('a database that was put back is damaged, also for a new server', async () => {
  const place = sandbox()
  const url = postgresUrl(place.folder)
  place.env['LEASEHOLD_STORE'] = url
  const first = await daemonOn(place)
  await place.ok(['task', 'add', 'Kept'])
  const putBack = await putBackLater(url)
  await place.ok(['task', 'add', 'Lost'])
  const { fence } = await place.ok(['lock', 'acquire', 'a', '--agent', 'a'])
  first.running.kill('SIGKILL')
  await first.running.ended
  await putBack()

  const second = await place.cli(['--json', 'serve', '--port', '0'])
  expect(second, 'a new server').toMatchObject({ code: 76, out: '' })
  expect(second.error.message).toMatch(/was put back to an earlier state/)
  expect(second.error.next).toMatch(/--raise-epoch/)
  for (const args of [
    ['lock', 'acquire', 'b'],
    ['task', 'list'],
    ['db', 'check'],
  ]) {
    await place.refused(args, 'damaged', 76)
  }
  // It ends with a check, which says of the server of the tests that it does not sync.
  await place.refused(['db', 'restore', '--raise-epoch', '--yes'], 'unavailable', 75)
  await daemonOn(place)
  expect((await place.ok(['lock', 'acquire', 'a', '--agent', 'b'])).fence).toBeGreaterThan(fence)
})
