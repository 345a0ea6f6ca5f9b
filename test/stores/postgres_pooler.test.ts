import { expect, test } from 'vitest'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import type { Connection } from '../../src/stores/postgres/driver.ts'
import { refuseShared } from '../../src/stores/postgres/pooled.ts'
import { Sessions } from '../../src/stores/postgres/session.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'

const ada = callerOf('ada')

function openAt(url: string) {
  const backend = new PostgresBackend({ address: addressOf(url), busy_timeout_ms: 5_000 })
  return { backend, verbs: new Verbs(new Store(backend, new MachineSim())) }
}

/** As a pooler hands it out that does not clean up: somebody else's mark is still there. */
function usedSession(url: string): string {
  const used = new URL(url)
  used.searchParams.set('options', '-c leasehold.session=12345')
  return used.href
}

test('a session that another client has used is refused, for reading too', async () => {
  const { verbs } = openAt(usedSession(postgresUrl(temporaryFolder())))
  const { message, next } = await expectRefusal(verbs.take('a', ada), 'unavailable')
  expect(message).toMatch(/pooler/)
  expect(next).toMatch(/pool_mode = session/)
  await expectRefusal(verbs.lease('a'), 'unavailable')
  await verbs.store.close()
})

test('a transaction in another session than the one we have opened is refused', async () => {
  const { backend, verbs } = openAt(postgresUrl(temporaryFolder()))
  await verbs.take('a', ada)
  const { writer } = backend as unknown as { writer: Connection }
  // What a pooler does to a session before the next client gets it.
  await writer.run('DISCARD ALL')
  const { message } = await expectRefusal(verbs.take('b', ada), 'unavailable')
  expect(message).toMatch(/in the session of another client/)
  expect(await verbs.lease('b')).toBeUndefined()
  await verbs.store.close()
})

test('a session that is given to another client while it does nothing is refused', async () => {
  const url = postgresUrl(temporaryFolder())
  const open = (to: string) => new Sessions(addressOf(to), 5_000).open()
  const db = await open(url)
  expect(db.isDirect).toBe(true)
  await refuseShared(db, () => open(url))
  expect(db.isLost).toBe(false)
  await expectRefusal(
    refuseShared(db, () => open(usedSession(url))),
    'unavailable',
  )
  expect(db.isLost).toBe(true)
})
