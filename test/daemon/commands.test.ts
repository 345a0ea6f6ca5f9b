import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { send, servingPlace, type Served, startDaemon, unseen } from '../doors/serving.ts'
import { sandbox } from '../support/inside.ts'
import { type Sandbox, until } from '../support/processes.ts'

/** Stands between commands and the daemon, and keeps what passes. */
class Between {
  readonly paths: string[] = []
  readonly seen: string[] = []
  url = ''
  /** What it does with the next request: pass it on, or lose the answer. */
  losesAnswers = false

  static async before(daemon: Served): Promise<Between> {
    const between = new Between()
    const server = createServer((request, response) => {
      void between.pass(daemon, request).then((reply) => {
        if (between.losesAnswers) return request.socket.destroy()
        response.writeHead(reply.status, { 'content-type': 'application/json' })
        return response.end(reply.text)
      })
    })
    server.listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await until('it listens', () => server.listening)
    between.url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
    pointTo(daemon.place, between.url)
    return between
  }

  private async pass(daemon: Served, request: IncomingMessage) {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    this.paths.push(`${request.method} ${request.url}`)
    this.seen.push(request.rawHeaders.join(' '))
    const { authorization, 'leasehold-caller': caller } = request.headers
    const headers = { authorization, 'leasehold-caller': caller as string | undefined }
    return send(daemon.url, request.url!, {
      method: request.method!,
      headers: { 'content-type': request.headers['content-type'], ...headers },
      body: Buffer.concat(chunks),
    })
  }
}

/** Changes where commands look for the daemon. */
function pointTo(place: Sandbox, url: string): void {
  const file = join(place.state, 'server.json')
  const server = JSON.parse(readFileSync(file, 'utf8')) as object
  writeFileSync(file, JSON.stringify({ ...server, url }), { mode: 0o600 })
}

describe('commands use the daemon that runs', () => {
  test('with the secret of this login, and nothing secret in the address', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const between = await Between.before(daemon)
    await place.ok(['task', 'add', 'Work', '--id', '1'])
    await place.ok(['task', 'claim', '1', '--agent', 'ada'])
    await place.ok(['lock', 'status', 'task:1'])
    expect(between.paths).toEqual([
      'POST /v1/task.create',
      'POST /v1/task.claim',
      'POST /v1/lock.status',
    ])
    for (const headers of between.seen) expect(headers).toContain(`Bearer ${daemon.secret}`)
    expect(between.paths.join()).not.toContain(daemon.secret)
  })

  test('an answer that gets lost is asked for again on the store, with one effect', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const between = await Between.before(daemon)
    between.losesAnswers = true
    const added = await place.ok(['task', 'add', 'Once'])
    expect(between.paths).toEqual(['POST /v1/task.create'])
    const { items } = await daemon.ok('task.list')
    expect(items.map(({ id }: { id: string }) => id)).toEqual([added.id])
  })

  test('when the daemon is gone, or another program has its port, the store is used', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    await daemon.kill()
    expect(existsSync(join(place.state, 'server.json'))).toBe(true)
    await place.ok(['task', 'add', 'Alone', '--id', '1'])
    const other = createServer((_, response) => response.end('<h1>hello</h1>'))
    other.listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await until('it listens', () => other.listening)
    pointTo(place, `http://127.0.0.1:${(other.address() as { port: number }).port}`)
    expect(await place.ok(['task', 'show', '1'])).toMatchObject({ title: 'Alone' })
    writeFileSync(join(place.state, 'server.json'), 'not JSON', { mode: 0o600 })
    expect(await place.ok(['task', 'show', '1'])).toMatchObject({ title: 'Alone' })
  })

  test('an address that is not of this machine is never asked', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const between = await Between.before(daemon)
    const { port } = new URL(between.url)
    for (const url of [
      `http://127.0.0.1.evil.com:${port}`,
      `http://127.0.0.1@evil.com:${port}`,
      `http://127.0.0.1:${port}@evil.com:80`,
      `http://127.0.0.1:1@127.0.0.1:${port}`,
      `https://127.0.0.1:${port}`,
      `http://0.0.0.0:${port}`,
      'http://example.com:4747',
    ]) {
      pointTo(place, url)
      await place.ok(['lock', 'list'])
    }
    expect(between.paths).toEqual([])
    pointTo(place, `http://127.0.0.1:${port}`)
    await place.ok(['lock', 'list'])
    expect(between.paths).toEqual(['POST /v1/lock.list'])
  })

  test('files that others may read are refused, whoever made them so', async () => {
    const place = servingPlace(sandbox())
    await startDaemon(place)
    for (const name of ['admin.token', 'server.json']) {
      const file = join(place.state, name)
      chmodSync(file, 0o644)
      const { details } = await place.refused(['lock', 'list'], 'forbidden', 4)
      expect(details).toMatchObject({ path: file, mode: '644' })
      chmodSync(file, 0o600)
    }
    await place.ok(['lock', 'list'])
  })

  test('a lock of any script speaks for its holder through the daemon too', async () => {
    const place = servingPlace(sandbox())
    await startDaemon(place)
    const { fence } = await place.ok(['lock', 'acquire', 'блок/錠🔒', '--agent', 'ада'])
    const env = {
      LEASEHOLD_LOCK: 'блок/錠🔒',
      LEASEHOLD_FENCE: String(fence),
      LEASEHOLD_AGENT: 'ада',
    }
    expect(await place.ok(['lock', 'renew', 'блок/錠🔒'], { env })).toMatchObject({ fence })
  })
})

describe('LEASEHOLD_TOKEN is all that a command is', () => {
  test('it acts as the agent of the token, and may do no more', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const env = { LEASEHOLD_TOKEN: await daemon.agentToken('ada') }
    expect(await place.ok(['lock', 'acquire', 'x'], { env })).toMatchObject({ holder: 'ada' })
    const nested = ['lock', 'acquire', 'y', '--agent', 'ada/sub']
    expect(await place.ok(nested, { env })).toMatchObject({ holder: 'ada/sub' })
    await place.refused(['lock', 'acquire', 'z', '--agent', 'bob'], 'forbidden', 4, { env })
    for (const args of [
      ['lock', 'force-release', 'x'],
      ['token', 'list'],
      ['token', 'create', '--role', 'admin'],
      ['--force', 'lock', 'force-release', 'x'],
    ]) {
      await place.refused(args, 'forbidden', 4, { env })
    }
    const viewer = { LEASEHOLD_TOKEN: await daemon.token('viewer') }
    await place.refused(['lock', 'acquire', 'v'], 'forbidden', 4, { env: viewer })
    expect(await place.ok(['lock', 'status', 'x'], { env: viewer })).toMatchObject({
      is_locked: true,
    })
    const admin = { LEASEHOLD_TOKEN: await daemon.token('admin') }
    await place.ok(['lock', 'force-release', 'x'], { env: admin })
  })

  test('it is made for an agent, with bounds and an end', async () => {
    const place = servingPlace(sandbox())
    await startDaemon(place)
    const args = ['token', 'create', '--role', 'agent', '--agent', 'ada']
    const both = ['--user', 'alice', '--user', 'bob', '--project', 'web', '--ttl', '2h']
    const { token: LEASEHOLD_TOKEN, ...made } = await place.ok([...args, ...both])
    const scope = { users: ['alice', 'bob'], projects: ['web'], task: null }
    expect(made).toMatchObject({ role: 'agent', agent: 'ada', scope })
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(7_200_000)
    const env = { LEASEHOLD_TOKEN }
    expect(await place.ok(['lock', 'list'], { env })).toMatchObject({ items: [] })
    for (const [flags, open] of [
      [['--user', 'alice', '--all-projects'], { users: ['alice'], projects: 'all' }],
      [['--project', 'web', '--all-users'], { users: 'all', projects: ['web'] }],
    ] as const) {
      expect(await place.ok([...args, ...flags])).toMatchObject({ scope: open })
    }
  })

  test('it is never backed by the store or the secret of this login', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const token = await daemon.agentToken('ada')
    const bad = { LEASEHOLD_TOKEN: `${token}x` }
    await place.refused(['task', 'add', 'No'], 'unauthorized', 4, { env: bad })
    await place.refused(['lock', 'list'], 'unauthorized', 4, { env: bad })
    await place.refused(['lock', 'list'], 'unauthorized', 4, { env: { LEASEHOLD_TOKEN: 'a b\n' } })
    const env = { LEASEHOLD_TOKEN: token }
    for (const args of [
      ['db', 'check'],
      ['db', 'migrate'],
      ['db', 'backup', place.path('stolen')],
      ['serve', '--port', '0'],
    ]) {
      await place.refused(args, 'forbidden', 4, { env })
    }
    expect(existsSync(place.path('stolen'))).toBe(false)
    await daemon.kill()
    await place.refused(['task', 'add', 'No'], 'unavailable', 75, { env })
    const away = { ...env, LEASEHOLD_DIR: place.path('elsewhere') }
    await place.refused(['task', 'add', 'No'], 'unavailable', 75, { env: away })
    expect(await place.ok(['task', 'list'])).toEqual({ items: [], next: null })
  })
})

describe('commands on the store beside the daemon', () => {
  test('50 of them and HTTP clients write at once, and nothing is lost', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const titles = new Set<string>()
    const overHttp = async (client: number) => {
      for (let i = 0; i < 20; i += 1) {
        const title = `http ${client} ${i}`
        await daemon.ok('task.create', { title })
        titles.add(title)
      }
    }
    const byCommand = async (i: number) => {
      await place.ok(['task', 'add', `command ${i}`])
      titles.add(`command ${i}`)
    }
    const [one, two] = [0, 1].map((part) => Array.from({ length: 25 }, (_, i) => part * 25 + i))
    // Half of them find the daemon, half of them write the store themselves.
    const clients = Array.from({ length: 8 }, (_, i) => overHttp(i))
    await unseen(place, () => Promise.all(one!.map(byCommand)))
    await Promise.all([...two!.map(byCommand), ...clients])
    const { items } = await daemon.ok('task.list', { limit: 1000 })
    const found = items.map(({ title }: { title: string }) => title)
    expect(found.toSorted()).toEqual([...titles].toSorted())
    expect(titles.size).toBe(50 + 8 * 20)
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
  })

  test('a waiter in the daemon is woken by a release on the store', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['x'], agent: 'ada' })
    const waiting = daemon.ok('lock.acquire', { names: ['x'], agent: 'bob', wait_seconds: 60 })
    await until('bob waits', async () => {
      return (await daemon.ok('lock.status', { name: 'x' })).waiters.length === 1
    })
    await unseen(place, () => place.ok(['lock', 'release', 'x', '--agent', 'ada']))
    const released = performance.now()
    expect(await waiting).toMatchObject({ name: 'x', holder: 'bob' })
    expect(performance.now() - released).toBeLessThan(1_500)
  })

  test('a waiter whose connection ends leaves the line', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['x'], agent: 'ada' })
    const line = async () => {
      const { waiters } = await daemon.ok('lock.status', { name: 'x' })
      return (waiters as { agent: string }[]).map(({ agent }) => agent).join()
    }
    const hangsUp = new AbortController()
    const input = { names: ['x'], wait_seconds: 60 }
    const { signal } = hangsUp
    const bob = daemon.post('lock.acquire', { ...input, agent: 'bob' }, { signal })
    await until('bob waits', async () => (await line()) === 'bob')
    const cy = daemon.ok('lock.acquire', { ...input, agent: 'cy' })
    await until('cy waits', async () => (await line()) === 'bob,cy')
    hangsUp.abort()
    await expect(bob).rejects.toThrow(/abort/)
    await daemon.ok('lock.release', { name: 'x', agent: 'ada' })
    expect(await cy).toMatchObject({ holder: 'cy' })
  })
})
