import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { until } from '../support/processes.ts'
import { Participant } from './leader_rig.ts'

/** The first of them leads, and the others send it what they are asked. */
async function led(...all: Participant[]): Promise<void> {
  for (const each of all) await each.ready()
  const [leader, ...followers] = all
  expect(await leader!.status()).toMatchObject({ isLeading: true })
  for (const each of followers) {
    await until('a follower has found the leader', async () => {
      await each.ask('agent.heartbeat', {})
      return (await each.status()).isLed
    })
  }
}

async function two(env = {}, env2 = env): Promise<[Participant, Participant]> {
  const url = postgresUrl(temporaryFolder())
  const one = await new Participant(url, 'one', env).ready()
  const other = new Participant(url, 'other', env2)
  await led(one, other)
  return [one, other]
}

test('what is asked of a follower is decided by the leader, refusals too', async () => {
  const [leader, follower] = await two()
  const before = (await follower.status()).asks
  const { answer } = await follower.ask('lock.acquire', { names: ['a'] }, 'bob')
  expect(answer).toMatchObject({ name: 'a', holder: 'bob' })
  const { refusal } = await follower.ask('lock.acquire', { names: ['a'] }, 'eve')
  expect(refusal).toMatchObject({ code: 'held', details: { holder: 'bob' } })
  expect((await follower.status()).asks).toBe(before)
  const { answer: seen } = await follower.ask('lock.status', { name: 'a' })
  expect(seen).toMatchObject({ lock_holder: 'bob', fence: answer.fence })
  await follower.end()
  await leader.end()
})
