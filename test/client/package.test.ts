import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../support/helpers.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const PROGRAM = `
import { connect, Refusal } from 'leasehold'
import { connect as same } from 'leasehold/client'
const client = await connect({ agent: 'a' })
const held = await client.withLock('x', () => client.lock.status({ name: 'x' }))
const refused = await client.task.get({ id: 'none' }).catch((error) => error)
console.log(JSON.stringify([connect === same, held.lock_holder, refused instanceof Refusal]))
await client.close()
`

it('the package exports a client that runs by itself, from what the build made', () => {
  const env = { ...process.env, LEASEHOLD_DIR: temporaryFolder() }
  const args = ['--input-type=module', '-e', PROGRAM]
  const said = execFileSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' })
  expect(JSON.parse(said)).toEqual([true, 'a', true])
})
