import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { proofOf, WRITER } from '../../src/reach/leader_wire.ts'
import { send, type Served, servingPlace, startDaemon } from '../doors/serving.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { ROUNDS, Running, until } from '../support/processes.ts'
import { wrongEffects } from './leader_check.ts'
import { Company, type Deed, Participant } from './leader_rig.ts'
import { openAt } from './postgres_writers.ts'

const MANY = 10
/** Higher than the kernel gives any. */
const DEAD_PID = 4_194_304

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

/** Shorter than a daemon's, so that a stopped leader is followed by another within seconds. */
const TTL_MS = 3_000
const SERVED_MS = 5_000
const TIMES = ROUNDS === 1 ? 1 : Number(process.env['LEADER_FAULTS'] ?? 200)

type Fault = (company: Company, leader: Participant) => Promise<void>

/** Does something to the leader, and returns when another leads, or it does again. */
const FAULTS: Record<string, Fault> = {
  'is killed': async (company, leader) => {
    leader.running.kill('SIGKILL')
    await leader.running.ended
    company.remove(leader)
    await company.leader()
    await company.add()
  },
  'is stopped for longer than its lease': async (company, leader) => {
    await leader.running.stop()
    company.all.splice(company.all.indexOf(leader), 1)
    await company.leader()
    leader.running.kill('SIGCONT')
    company.all.push(leader)
  },
  'hangs up on its followers': async (_, leader) =>
    void (await leader.relay('followers', 'pass', true)),
  'is not heard by its followers any more': async (company, leader) => {
    await leader.relay('followers', 'silent')
    const others = company.all.filter((each) => each !== leader)
    await until('they notice', async () => {
      const all = await Promise.all(others.map((each) => each.status()))
      return all.every(({ isLed }) => !isLed) || all.some(({ isLeading }) => isLeading)
    })
    await leader.relay('followers', 'pass')
  },
  'cannot reach the database': async (company, leader) => {
    await leader.relay('database', 'silent')
    const others = company.all.filter((each) => each !== leader)
    await until('another leads', async () => {
      const all = await Promise.all(others.map((each) => each.status()))
      return all.some(({ isLeading }) => isLeading)
    })
    await leader.relay('database', 'pass', true)
  },
}

/** What went wrong when the leaders of one company suffered these, one after the other. */
async function suffer(faults: Fault[]) {
  const url = postgresUrl(temporaryFolder())
  const company = new Company(url, { TTL_MS: String(TTL_MS), RELAYS: 'yes' })
  await company.add(4)
  const silences_ms: number[] = []
  await company.leader()
  const rates = [await company.rate()]
  for (const fault of faults) {
    const leader = await company.leader()
    const since_ms = performance.now()
    await fault(company, leader)
    await company.leader()
    silences_ms.push(company.silenceBut(leader, since_ms))
  }
  rates.push(await company.rate())
  await company.end()
  const worst_ms = Math.round(Math.max(...silences_ms))
  const deeds = company.deeds()
  const told = `${deeds.length} effects, nobody served for ${worst_ms} ms at most`
  process.stderr.write(`${told}; ${rates.join(' a second before, ')} afterwards\n`)
  return { wrong: await wrongAt(url, deeds), worst_ms }
}

async function wrongAt(url: string, deeds: Deed[]): Promise<string[]> {
  const store = openAt(url)
  const wrong = await wrongEffects(store, deeds)
  await store.close()
  return wrong
}

const KINDS: [string, Fault[]][] =
  ROUNDS === 1
    ? [['suffers all that a leader can', Object.values(FAULTS)]]
    : Object.entries(FAULTS).map(([name, fault]) => [
        `${name} ${TIMES} ×`,
        Array.from({ length: TIMES }, () => fault),
      ])

describe('three followers under load, while their leader', () => {
  test.each(KINDS)(
    '%s: nothing is lost or doubled, and others are served meanwhile',
    async (_, faults) => {
      const { wrong, worst_ms } = await suffer(faults)
      expect(wrong).toEqual([])
      expect(worst_ms).toBeLessThan(SERVED_MS)
    },
    60_000 + TIMES * 30_000,
  )
})

/** What a leader answers that slept while another led and granted the same lock. */
async function asleep(env: Record<string, string>) {
  const url = postgresUrl(temporaryFolder())
  const one = await new Participant(url, 'one', { TTL_MS: String(TTL_MS), ...env }).ready()
  const other = new Participant(url, 'other', { TTL_MS: String(TTL_MS) })
  await led(one, other)
  const { answer } = await one.ask('lock.acquire', { names: ['a'] }, 'ada')
  await one.ask('lock.release', { name: 'a', fence: answer.fence }, 'ada')
  await one.running.stop()
  await until('the other leads', async () => (await other.status()).isLeading)
  await other.ask('lock.acquire', { names: ['a'] }, 'bob')
  one.running.kill('SIGCONT')
  const late = await one.ask('lock.acquire', { names: ['a'] }, 'ada')
  for (const { running } of [one, other]) running.kill('SIGKILL')
  for (const { running } of [one, other]) await running.ended
  return { late, wrong: await wrongAt(url, []) }
}

describe('a leader that slept while another led', () => {
  test('decides on what is there now', async () => {
    const { late, wrong } = await asleep({})
    expect(late).toMatchObject({ refusal: { code: 'held', details: { holder: 'bob' } } })
    expect(wrong).toEqual([])
  })

  test('would be seen to decide on what was there before (planted R37)', async () => {
    const { late, wrong } = await asleep({ BUG: 'R37' })
    expect(late).toMatchObject({ answer: { holder: 'ada' } })
    expect(wrong).toEqual([expect.stringMatching(/^a was given as \d+ while \d+ held it$/)])
  })
})

describe('a follower on another host than its leader', () => {
  const SEAT = 'another host'

  test('frees at once what a process of its own had, whose death only it can prove', async () => {
    const [leader, follower] = await two({}, { SEAT })
    const gone = { host: 'elsewhere', seat: SEAT, pid: DEAD_PID, start: 1 }
    const first = await follower.ask('lock.acquire', { names: ['a'], process: gone }, 'bob')
    expect(first).toMatchObject({ answer: { holder: 'bob' } })
    const asks = (await follower.status()).asks
    const { answer } = await follower.ask('lock.acquire', { names: ['a'] }, 'eve')
    expect(answer).toMatchObject({ holder: 'eve' })
    expect(answer.fence).toBeGreaterThan(first.answer.fence)
    expect((await follower.status()).asks).toBeGreaterThan(asks)
    await follower.end()
    await leader.end()
  })

  test('takes the answer of the leader where nothing of its own is in question', async () => {
    const [leader, follower] = await two({}, { SEAT })
    await follower.ask('lock.acquire', { names: ['a'] }, 'bob')
    const { asks } = await follower.status()
    const { refusal } = await follower.ask('lock.acquire', { names: ['a'] }, 'eve')
    expect(refusal).toMatchObject({ code: 'held' })
    expect((await follower.status()).asks).toBe(asks)
    await follower.end()
    await leader.end()
  })
})

test('who does not know the secret is told nothing, and asks nothing', async () => {
  const url = postgresUrl(temporaryFolder())
  const leader = await new Participant(url, 'one').ready()
  const store = openAt(url)
  const row = (await store.leaders!.read())!
  const socket = connect(Number(row.address.split(':')[1]), '127.0.0.1').setEncoding('utf8')
  const said: string[] = []
  socket.on('data', (text: string) => said.push(text))
  await once(socket, 'data')
  const nonce = (JSON.parse(said[0]!) as { nonce: string }).nonce
  const proof = proofOf('guessed', 'follower', [nonce, 'mine'])
  const ask = { id: 1, operation: 'lock.acquire', input: { names: ['a'] }, caller: callerOf('eve') }
  socket.write(`${JSON.stringify({ nonce: 'mine', proof })}\n${JSON.stringify(ask)}\n`)
  await once(socket, 'close')
  expect(said).toHaveLength(1)
  expect(said[0]).not.toContain(row.secret)
  expect((await leader.ask('lock.status', { name: 'a' })).answer).toMatchObject({
    is_locked: false,
  })
  await store.close()
  await leader.end()
})

test('a wait through a follower has its place in the line, and its turn comes', async () => {
  const [leader, follower] = await two()
  const { answer: first } = await leader.ask('lock.acquire', { names: ['a'] }, 'ada')
  const waiting = follower.ask('lock.acquire', { names: ['a'], wait_seconds: 20 }, 'bob')
  await until('it stands in line', async () => {
    return (await leader.ask('lock.status', { name: 'a' })).answer.waiters.length === 1
  })
  await leader.ask('lock.release', { name: 'a', fence: first.fence }, 'ada')
  expect((await waiting).answer).toMatchObject({ holder: 'bob' })
  await follower.end()
  await leader.end()
})

/** How many asks a server has decided itself. */
async function decidedBy({ url, secret }: Served): Promise<number> {
  const { text } = await send(url, '/metrics', { token: secret })
  return Number(/^leasehold_batch_asks_sum (\d+)/m.exec(text)![1])
}

test('of two servers one leads, and the other goes on without it when it is killed', async () => {
  const url = postgresUrl(temporaryFolder())
  const places = [servingPlace(), servingPlace()]
  for (const place of places) place.env['LEASEHOLD_STORE'] = url
  const [leader, follower] = [await startDaemon(places[0]!), await startDaemon(places[1]!)]
  const decided = () => decidedBy(follower)
  const holder = async () => (await follower.ok('lock.status', { name: WRITER })).pid as number
  const lock = (i: number) => follower.ok('lock.acquire', { names: [`lock-${i}`], agent: 'ada' })
  expect(await holder()).toBe(leader.running.pid)
  await lock(0)
  await until('the follower has found the leader', async () => {
    const before = await decided()
    for (let i = 1; i <= MANY; i += 1) await lock(i)
    return (await decided()) - before < MANY / 2
  })
  await leader.kill()
  const { fence } = await lock(MANY + 1)
  expect(fence).toBeGreaterThan(0)
  await until('the other leads', async () => (await holder()) === follower.running.pid)
})

/** More than a server asks for itself while a test waits: it renews its roles. */
const BY_ITSELF = 300

const PROGRAM = `
import { connect } from 'leasehold'
const client = await connect({ agent: 'sdk', embedded: true })
process.stdin.once('end', () => (isOver = true)).resume()
let isOver = false
for (let i = 0; !isOver; i += 1) await client.lock.acquire({ names: ['lock-' + i] })
await client.close()
`

test('a program that opens the store through the SDK asks the server that leads', async () => {
  const place = servingPlace()
  place.env['LEASEHOLD_STORE'] = postgresUrl(temporaryFolder())
  const leader = await startDaemon(place)
  const before = await decidedBy(leader)
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const env = { PATH: process.env['PATH'], ...place.env }
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { cwd, env })
  const program = new Running(child, undefined)
  const decided = async () => (await decidedBy(leader)) - before
  await until('the server decides for it', async () => (await decided()) > BY_ITSELF)
  child.stdin.end()
  expect(await program.ended).toMatchObject({ code: 0, err: '' })
})
