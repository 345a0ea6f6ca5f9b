import { chownSync } from 'node:fs'
import { hostname } from 'node:os'
import { expect, test, type TestContext } from 'vitest'
import { because, sandbox } from '../support/processes.ts'

/** No entry in passwd has this number: so it is with `docker run --user 12345`. */
const NAMELESS = 12_345

function nameless(context: TestContext) {
  // reason: only root can start a process as another login
  if (process.getuid?.() !== 0) context.skip(because('not root: no other login to be'))
  const place = sandbox()
  chownSync(place.folder, NAMELESS, NAMELESS)
  return { place, as: { uid: NAMELESS } }
}

test('a login without a name is known by its number', async (context) => {
  const { place, as } = nameless(context)
  await place.ok(['task', 'add', 'One', '--id', '1'], as)
  const { findings } = await place.ok(['doctor'], as)
  const agent = findings.find(({ what }: { what: string }) => what === 'agent')
  expect(agent.says).toContain(`cli:uid-${NAMELESS}@${hostname()}`)
})

test('a login without a home is told to say where the state lives', async (context) => {
  const { place, as } = nameless(context)
  const env = { HOME: undefined, LEASEHOLD_DIR: undefined }
  const refusal = await place.refused(['task', 'list'], 'invalid', 2, { ...as, env, cwd: '/' })
  expect(refusal).toMatchObject({
    message: expect.stringContaining('HOME is not set'),
    next: expect.stringContaining('LEASEHOLD_DIR'),
  })
  const homeless = { ...as, env: { HOME: undefined } }
  await place.ok(['task', 'add', 'One', '--id', '1'], homeless)
  expect(await place.ok(['task', 'show', '1'], homeless)).toMatchObject({ title: 'One' })
  expect(await place.ok(['doctor'], homeless)).toMatchObject({ ok: true })
})
