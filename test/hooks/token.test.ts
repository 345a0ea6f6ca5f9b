import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/operations/budget.ts'
import { agentClient, clientOf, type Daemon, daemonOn } from '../support/daemons.ts'
import type { Json } from '../doors/serving.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { expectDenied, expectSilent, type Repo, repository } from './agents.ts'

async function tokenOf({ place }: Repo, role: string, ...more: string[]): Promise<string> {
  return (await place.ok(['token', 'create', '--role', role, ...more])).token as string
}

/**
 * What an agent has that knows a server and a token, and nothing of the files of the store; hooks
 * are set in a state folder of its own.
 */
function given({ place }: Repo, { url }: Daemon, token: string, hooks?: object) {
  const folder = place.path(`agent-${Math.random()}`)
  mkdirSync(folder, { mode: 0o700 })
  if (hooks) writeFileSync(join(folder, 'config.json'), JSON.stringify({ hooks }))
  return { LEASEHOLD_URL: url, LEASEHOLD_TOKEN: token, LEASEHOLD_DIR: folder }
}

const reserved = async ({ place }: Repo): Promise<Json[]> =>
  (await place.ok(['reserve', 'list'])).items

describe('hooks with a token', () => {
  test('put a bypass on record as theirs, and not as a person’s', async () => {
    const repo = repository()
    const daemon = await daemonOn(repo.place)
    const client = await agentClient(repo.place, daemon, 'ada')
    await client.hook.bypass({ paths: ['a.ts'], reason: 'a person said so' })
    const { items } = await repo.place.ok(['event', 'list', '--type', 'hook.bypassed'])
    expect(items).toMatchObject([{ agent: 'ada', data: { by_person: false } }])
  })

  test('reserve in the name of its agent, keep others out, and give back', async () => {
    const repo = repository()
    const { a, b } = repo
    const daemon = await daemonOn(repo.place)
    a.env = given(repo, daemon, await tokenOf(repo, 'agent', '--agent', 'ada'))
    const file = repo.place.path('claude.env')
    a.env = { ...a.env, CLAUDE_ENV_FILE: file }
    const brief = await a.fire('SessionStart', { source: 'startup', model: 'm' })
    expect(brief.out).toContain('You are who your token says.')
    // Commands of the agent act by the token too: under a name of our own they would be refused.
    expect(existsSync(file)).toBe(false)
    expectSilent(await a.edit('a.ts'))
    expectSilent(await a.fire('SubagentStop', { agent_id: 'one', agent_type: 'x' }))
    expect(await reserved(repo)).toMatchObject([
      { path: 'a.ts', holder: 'ada', pid: a.running.pid },
    ])
    // With another token, and with none: a file of the same checkout is the same file.
    b.env = given(repo, daemon, await tokenOf(repo, 'agent', '--agent', 'bob'))
    expect(expectDenied(await b.edit('a.ts'))).toMatch(/a\.ts is reserved by ada/)
    b.env = {}
    expect(expectDenied(await b.edit('a.ts'))).toMatch(/a\.ts is reserved by ada/)
    // What an edit has reserved is given back at the end of the turn.
    expectSilent(await a.stop())
    expect(await reserved(repo)).toEqual([])
    expectSilent(await b.edit('a.ts'))
    expect(expectDenied(await a.edit('a.ts'))).toContain(`reserved by ${b.id}`)
    expectSilent(await b.end())
    expectSilent(await a.edit('a.ts'))
    expectSilent(await a.end())
    expect(await reserved(repo)).toEqual([])
  })

  test('refuse the edit when the budget of their token is used up', async () => {
    const repo = repository()
    const { a } = repo
    const daemon = await daemonOn(repo.place)
    const token = await tokenOf(repo, 'agent', '--agent', 'ada')
    const client = await clientOf({ url: daemon.url, token, retry_seconds: 20 })
    for (let i = 0; i < LIMITS.leases.max / 100; i += 1) {
      const names = Array.from({ length: 100 }, (_, n) => `${i}-${n}`)
      await client.lock.acquire({ names, ttl_seconds: 3600 })
    }
    a.env = given(repo, daemon, token)
    const denied = expectDenied(await a.edit('a.ts'))
    expect(denied).toContain('This token may have 2000 locks and reservations held')
  }, 120_000)

  test('tell subagents apart where the id of the token is given too', async () => {
    const repo = repository()
    const { a } = repo
    const daemon = await daemonOn(repo.place)
    const token = await tokenOf(repo, 'agent', '--agent', 'ada')
    a.env = { ...given(repo, daemon, token), LEASEHOLD_AGENT: 'ada' }
    expectSilent(await a.edit('a.ts', { agent_id: 'one', agent_type: 'x' }))
    expect(await reserved(repo)).toMatchObject([{ holder: 'ada/one' }])
    const no = expectDenied(await a.edit('a.ts', { agent_id: 'two', agent_type: 'x' }))
    expect(no).toContain('reserved by ada/one')
    a.env = { ...a.env, LEASEHOLD_AGENT: 'somebody' }
    const other = await a.edit('b.ts')
    expect(other.code).toBe(0)
    expect(other.err).toMatch(/This token is for ada and cannot act as somebody.*unguarded/)
  })

  test.each([
    ['unknown', async () => 'lh_nonsense', /This token is unknown.*LEASEHOLD_TOKEN/],
    ['no token at all', async () => 'two words', /LEASEHOLD_TOKEN is not a token/],
    ['of a viewer', (repo: Repo) => tokenOf(repo, 'viewer'), /needs the role agent/],
  ] as [string, (repo: Repo) => Promise<string>, RegExp][])(
    'that is %s: say so, and go on or refuse as configured',
    async (_, token, why) => {
      const repo = repository()
      const { a } = repo
      const daemon = await daemonOn(repo.place)
      const secret = await token(repo)
      a.env = given(repo, daemon, secret)
      const said = await a.edit('a.ts')
      expect(said.code).toBe(0)
      expect(said.err).toMatch(why)
      expect(said.err).toContain('It goes on unguarded')
      a.env = given(repo, daemon, secret, { unreachable: 'closed' })
      const no = expectDenied(await a.edit('a.ts'))
      expect(no).toMatch(why)
      expect(no).toContain('refused (hooks.unreachable is closed)')
      // Never by the files of the store, although they could be read.
      expect(await reserved(repo)).toEqual([])
      expect((await a.end()).code).toBe(0)
    },
  )

  test('that was revoked, or whose server is gone: the same, in time', async () => {
    const repo = repository()
    const { a } = repo
    const daemon = await daemonOn(repo.place)
    const made = await repo.place.ok(['token', 'create', '--role', 'agent', '--agent', 'ada'])
    a.env = given(repo, daemon, made.token, { unreachable: 'closed' })
    expectSilent(await a.edit('a.ts'))
    await repo.place.ok(['token', 'revoke', made.id, '--force'])
    expect(expectDenied(await a.edit('b.ts'))).toMatch(/unknown, expired or revoked/)
    daemon.running.kill('SIGKILL')
    await daemon.running.ended
    expect(expectDenied(await a.edit('b.ts'))).toMatch(/No server answers at http/)
    const noServer = { LEASEHOLD_TOKEN: made.token, LEASEHOLD_DIR: a.env['LEASEHOLD_DIR']! }
    a.env = noServer
    expect(expectDenied(await a.edit('b.ts'))).toMatch(/no server is known/)
  })

  test('is never sent in the clear to an address that asks for https', async () => {
    const repo = repository()
    let heard = Buffer.alloc(0)
    const listener = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        heard = Buffer.concat([heard, chunk])
        socket.destroy()
      })
    })
    await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void listener.close())
    const url = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`
    repo.a.env = given(repo, { url } as Daemon, 'lh_secret', { unreachable: 'closed' })
    const expectTls = () => {
      // A client's greeting in TLS begins with this byte.
      expect(heard[0]).toBe(0x16)
      expect(heard.includes('lh_secret')).toBe(false)
      heard = Buffer.alloc(0)
    }
    expect(expectDenied(await repo.a.edit('a.ts'))).toMatch(/No server answers at https/)
    expectTls()
    await repo.place.refused(['task', 'list'], 'unavailable', 75, { env: repo.a.env })
    expectTls()
    const client = await clientOf({ url, token: 'lh_secret', retry_seconds: 0 })
    await expect(client.task.list()).rejects.toMatchObject({ code: 'unavailable' })
    expectTls()
  })
})

describe('on a store that machines share', () => {
  test('a checkout is the same with an address of the server alone', async () => {
    const repo = repository()
    const { place, a, b } = repo
    const local = { LEASEHOLD_DIR: place.state }
    place.env['LEASEHOLD_STORE'] = postgresUrl(temporaryFolder())
    const daemon = await daemonOn(place)
    // As a dispatcher starts an agent: by address and token. The other knows the database itself.
    a.env = { ...given(repo, daemon, await tokenOf(repo, 'agent', '--agent', 'ada')) }
    b.env = { ...local, LEASEHOLD_STORE: place.env['LEASEHOLD_STORE'] }
    expectSilent(await a.edit('a.ts'))
    const checkout = `${hostname()}:${repo.repo}`
    expect(await reserved(repo)).toMatchObject([{ path: 'a.ts', holder: 'ada', checkout }])
    expect(expectDenied(await b.edit('a.ts'))).toContain('reserved by ada')
    expectSilent(await b.edit('b.ts'))
    expect(expectDenied(await a.edit('b.ts'))).toContain(`reserved by ${b.id}`)
    // The command line of the same agent means the same, too; so does its brief.
    const check = await a.leasehold('--json reserve check a.ts b.ts', a.env)
    const { items } = JSON.parse(check.out)
    const holders = items.map(({ holder }: Json) => holder)
    expect(holders).toEqual(['ada', b.id])
    const brief = await a.fire('SessionStart', { source: 'startup', model: 'm' })
    expect(brief.out).toContain('You are ada.')
    expect(brief.out).toContain(`${b.id} has b.ts`)
    expectSilent(await a.stop())
    expect(await reserved(repo)).toMatchObject([{ path: 'b.ts' }])
  })
})
