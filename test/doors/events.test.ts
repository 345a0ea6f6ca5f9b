import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import { type Sandbox, until } from '../support/processes.ts'
import { send, servingPlace, type Served, startDaemon, unseen } from './serving.ts'

const ESTABLISHED = '01'

interface Seen {
  id: string
  type: string
  data: { position?: number; data?: Record<string, unknown>; task?: string | null }
}

/** One listener, as a browser's EventSource would be: it remembers the last id it got. */
class Listener {
  readonly seen: Seen[] = []
  ended = false
  private readonly hangUp = new AbortController()
  private rest = ''

  constructor(private readonly daemon: Served) {
    onTestFinished(() => this.close())
  }

  /** Resolves when the stream is open. */
  async open(last?: string, how: 'header' | 'query' = 'header'): Promise<this> {
    const { url, secret } = this.daemon
    const headers: Record<string, string> = { authorization: `Bearer ${secret}` }
    if (last !== undefined && how === 'header') headers['last-event-id'] = last
    const path = how === 'query' ? `/v1/events?after=${last}` : '/v1/events'
    const response = await fetch(new URL(path, url), { headers, signal: this.hangUp.signal })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    void this.read(response)
    return this
  }

  private async read(response: Response): Promise<void> {
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body!) {
        this.take(decoder.decode(chunk as Uint8Array, { stream: true }))
      }
    } catch {
      // Hung up, by us or by the server.
    }
    this.ended = true
  }

  private take(text: string): void {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop()!
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
      const id = field('id')
      // A block without data only says where the stream begins.
      if (id === undefined || field('data') === undefined) continue
      this.seen.push({ id, type: field('event')!, data: JSON.parse(field('data')!) })
    }
  }

  get positions(): number[] {
    return this.seen.filter(({ type }) => type !== 'reset').map(({ data }) => data.position!)
  }

  get types(): string[] {
    return this.seen.map(({ type }) => type)
  }

  close(): void {
    this.hangUp.abort()
  }
}

const headOf = async (place: Sandbox) => (await place.ok(['db', 'check'])).events as number

function expectGapFree(positions: number[], first: number, last: number): void {
  expect(positions).toEqual(Array.from({ length: last - first + 1 }, (_, i) => first + i))
}

describe('events', () => {
  test('come as they happen, by whoever made them happen', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const listener = await new Listener(daemon).open()
    await daemon.ok('task.create', { title: 'over HTTP', id: '1' })
    await place.ok(['task', 'add', 'by a command', '--id', '2'])
    await unseen(place, () => place.ok(['task', 'add', 'on the store', '--id', '3']))
    const tasks = () => listener.seen.filter(({ type }) => type === 'task.created')
    await until('all three', () => tasks().length >= 3)
    expect(tasks().map(({ type, data }) => `${type} ${data.task}`)).toEqual([
      'task.created 1',
      'task.created 2',
      'task.created 3',
    ])
    expect(listener.seen[0]!.data).not.toHaveProperty('hash')
    expect(listener.seen[0]!.id).toMatch(/^\d+-\d+$/)
  })

  test('nothing is missed, nothing comes twice, though the listener comes and goes', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const first = await new Listener(daemon).open()
    await daemon.ok('task.create', { title: 'begin' })
    await until('the first', () => first.types.includes('task.created'))
    first.close()
    const positions = [...first.positions]
    let last = first.seen.at(-1)!.id
    let written = false
    const writing = Promise.all([
      ...Array.from({ length: 4 }, async (_, client) => {
        for (let i = 0; i < 60; i += 1) {
          await daemon.ok('task.create', { title: `${client} ${i}` })
        }
      }),
      unseen(place, async () => {
        for (let i = 0; i < 6; i += 1) await place.ok(['task', 'add', `command ${i}`])
      }),
    ]).then(() => (written = true))
    for (let round = 0; !written; round += 1) {
      const listener = await new Listener(daemon).open(last, round % 2 ? 'query' : 'header')
      await until('something more, or all is written', () => listener.seen.length > 3 || written)
      listener.close()
      positions.push(...listener.positions)
      expect(listener.types).not.toContain('reset')
      last = listener.seen.at(-1)?.id ?? last
    }
    await writing
    const end = await headOf(place)
    const rest = await new Listener(daemon).open(last)
    await until('the rest', () => (rest.positions.at(-1) ?? positions.at(-1)) === end)
    positions.push(...rest.positions)
    expectGapFree(positions, positions[0]!, end)
    expect(positions.length).toBeGreaterThan(240)
  })

  test('a long past is sent whole, however much it is', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const epoch = (await place.ok(['db', 'check'])).epoch as number
    for (let i = 0; i < 40; i += 1) {
      const names = Array.from({ length: 100 }, (_, n) => `${'n'.repeat(450)}${i}-${n}`)
      await daemon.ok('lock.acquire', { names, agent: 'ada' })
    }
    const end = await headOf(place)
    const listener = await new Listener(daemon).open(`${epoch}-0`)
    await until('all of it', () => listener.positions.at(-1) === end)
    expectGapFree(listener.positions, 1, end)
    expect(listener.ended).toBe(false)
  })
})

describe('a place that is no longer known', () => {
  test('is answered with reset, and then with what happens from now on', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    for (let i = 0; i < 10; i += 1) await daemon.ok('task.create', { title: `t${i}` })
    const end = await headOf(place)
    const epoch = (await place.ok(['db', 'check'])).epoch as number
    await place.ok(['db', 'prune', '--keep', '3'])
    for (const last of [
      `${epoch}-1`,
      `${epoch + 1}-${end}`,
      `${epoch}-${end + 5}`,
      'nonsense',
      '',
    ]) {
      const listener = await new Listener(daemon).open(last)
      await until(`reset behind ${last}`, () => listener.seen.length === 1)
      expect(listener.seen[0]).toMatchObject({ type: 'reset', id: `${epoch}-${end}` })
      listener.close()
    }
    const kept = await new Listener(daemon).open(`${epoch}-${end - 2}`)
    await until('what is kept', () => kept.seen.length === 2)
    expectGapFree(kept.positions, end - 1, end)
    await place.ok(['db', 'prune', '--keep', '0'])
    const listener = await new Listener(daemon).open(`${epoch}-${end - 2}`)
    await until('reset, though nothing is left to compare with', () => listener.seen.length === 1)
    await daemon.ok('task.create', { title: 'new' })
    await until('the new one', () => listener.seen.length === 2)
    expect(listener.types).toEqual(['reset', 'task.created'])
  })

  test('of a store that was restored: streams end, and whoever comes back is told', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    await daemon.ok('task.create', { title: 'kept' })
    await place.ok(['db', 'backup', place.path('copy')])
    const listener = await new Listener(daemon).open()
    await daemon.ok('task.create', { title: 'undone' })
    await until('it is live', () => listener.seen.length > 0)
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    await until('its stream ends', () => listener.ended)
    const back = await new Listener(daemon).open(listener.seen.at(-1)!.id)
    await until('reset', () => back.seen.length > 0)
    expect(back.types[0]).toBe('reset')
    const [epoch] = back.seen[0]!.id.split('-')
    expect(Number(epoch)).toBeGreaterThan(Number(listener.seen[0]!.id.split('-')[0]))
    await daemon.ok('task.create', { title: 'after' })
    await until('the new one', () => back.types.includes('task.created'))
  })
})

describe('a client that takes nothing', () => {
  test('is cut off at the bound, and costs the others nothing', async () => {
    const place = servingPlace(sandbox())
    const daemon = await startDaemon(place)
    const deaf = daemon.socket()
    let closed = false
    deaf.on('error', () => undefined)
    deaf.on('close', () => (closed = true))
    deaf.write(
      `GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${daemon.port}\r\n` +
        `Authorization: Bearer ${daemon.secret}\r\n\r\n`,
    )
    await until('it is connected', () => deaf.bytesRead > 0)
    deaf.pause()
    const listener = await new Listener(daemon).open()
    const worst = { ms: 0 }
    const filler = 'f'.repeat(500)
    // Until its buffers here and in the kernel are full, and the daemon has let it go.
    for (let i = 0; i < 400 && openStreams(daemon) > 1; i += 1) {
      const names = Array.from({ length: 50 }, (_, n) => `${filler}${i}-${n}`)
      const begun = performance.now()
      // Asked for the least that it takes: some ten megabytes have to come together.
      expect((await daemon.post('lock.acquire', { names, agent: 'ada' })).status).toBe(200)
      worst.ms = Math.max(worst.ms, performance.now() - begun)
    }
    expect(openStreams(daemon)).toBe(1)
    const end = await headOf(place)
    await until('the other has all of it', () => listener.positions.at(-1) === end)
    expectGapFree(listener.positions, listener.positions[0]!, end)
    expect(worst.ms).toBeLessThan(2_000)
    deaf.resume()
    await until('the deaf one finds its connection closed', () => closed)
    expect((await send(daemon.url, '/healthz')).status).toBe(200)
  })
})

/** Streams that the daemon keeps open, as the kernel knows them; requests close their own. */
function openStreams(daemon: Served): number {
  const local = `0100007F:${daemon.port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, at, , state]) => {
      return at === local && state === ESTABLISHED
    }).length
}
