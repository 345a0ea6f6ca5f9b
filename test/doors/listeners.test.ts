import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../support/processes.ts'
import { type Served, servingPlace, startDaemon } from './serving.ts'

const LISTENERS = 300
const COMMITS = 10
const FILLER = 'f'.repeat(400)

/** One connection that listens to events, and which positions it has heard of, when. */
class Listener {
  readonly heard: { position: number; late_ms: number }[] = []
  readonly socket: Socket
  private rest = ''

  constructor(daemon: Served) {
    this.socket = daemon.socket()
    this.socket.on('error', () => undefined)
    this.socket.write(
      `GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${daemon.port}\r\n` +
        `Authorization: Bearer ${daemon.secret}\r\n\r\n`,
    )
    this.socket.setEncoding('utf8').on('data', (text: string) => this.take(text))
    onTestFinished(() => void this.socket.destroy())
  }

  private take(text: string): void {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop()!
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (data === undefined) continue
      const { position, at } = JSON.parse(data) as { position: number; at: string }
      this.heard.push({ position, late_ms: Date.now() - Date.parse(at) })
    }
  }
}

const memoryOf = ({ running }: Served) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${running.pid}/status`, 'utf8'))![1]) / 1024

test(`${LISTENERS} listeners hear all in order, beside one that reads nothing`, async () => {
  const place = servingPlace()
  const daemon = await startDaemon(place)
  const before_mb = memoryOf(daemon)
  const deaf = new Listener(daemon)
  const listeners = Array.from({ length: LISTENERS }, () => new Listener(daemon))
  await until('all are connected', () => listeners.every(({ socket }) => socket.bytesRead > 0))
  deaf.socket.pause()
  for (let i = 0; i < COMMITS; i += 1) {
    const names = Array.from({ length: 10 }, (_, n) => `${FILLER}${i}-${n}`)
    await daemon.ok('lock.acquire', { names, agent: 'ada' })
  }
  const { events } = await place.ok(['db', 'check'])
  await until('everybody has everything', () =>
    listeners.every(({ heard }) => heard.at(-1)?.position === events),
  )
  for (const { heard } of listeners) {
    const [first] = heard
    expect(heard.map(({ position }) => position)).toEqual(heard.map((_, i) => first!.position + i))
  }
  const late_ms = listeners.flatMap(({ heard }) => heard.map((each) => each.late_ms))
  const p99_ms = late_ms.toSorted((a, b) => a - b)[Math.floor(late_ms.length * 0.99)]!
  // A busy machine with the listeners in one process: `npm run bench -- sse` measures in earnest.
  expect(p99_ms).toBeLessThan(10_000)
  expect(memoryOf(daemon) - before_mb).toBeLessThan(100)
  expect(await metrics(daemon)).toMatch(/^leasehold_event_listeners 301$/m)
})

async function metrics({ url, secret }: Served): Promise<string> {
  const headers = { authorization: `Bearer ${secret}` }
  return (await fetch(new URL('/metrics', url), { headers })).text()
}
