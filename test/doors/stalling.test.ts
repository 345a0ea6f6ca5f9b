import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/daemon/serve.ts'
import { placeOf } from '../../src/stores/open.ts'
import { sandbox, until } from '../support/processes.ts'
import { Raw } from './raw.ts'
import { send } from './serving.ts'

/** A server with short bounds on how long a request may take to arrive. */
async function impatient() {
  const own = sandbox()
  const at = placeOf({ LEASEHOLD_DIR: own.state }, own.folder)
  const served = await serve(at, 0, 'test', { headers_ms: 300, request_ms: 600 })
  onTestFinished(() => served.stop())
  const { port } = new URL(served.url)
  return { own, served, port }
}

describe('a client that stalls', () => {
  test('is cut off at the bound, told so, and keeps nobody else waiting', async () => {
    const { served, port } = await impatient()
    const lines = [`POST /v1/task.create HTTP/1.1`, `Host: 127.0.0.1:${port}`]
    const stalls: [string, string[]][] = [
      ['nothing', ['']],
      ['headers', [...lines, 'X-Slow: y']],
      ['body', [...lines, 'Content-Length: 100', '', '{"title"']],
      ['chunks', [...lines, 'Transfer-Encoding: chunked', '', '5\r\n{"tit\r\n']],
    ]
    const begun = performance.now()
    const slow = stalls.map(([what, text]) => {
      const asked = new Raw(connect(Number(port), '127.0.0.1')).write(...text)
      return asked.closed().then((replies) => ({ what, replies, ms: performance.now() - begun }))
    })
    let worst_ms = 0
    let cut = 0
    for (const each of slow) void each.then(() => (cut += 1))
    while (cut < slow.length) {
      const asked = performance.now()
      expect((await send(served.url, '/readyz')).status).toBe(200)
      worst_ms = Math.max(worst_ms, performance.now() - asked)
    }
    for (const { what, replies, ms } of await Promise.all(slow)) {
      expect(ms, what).toBeLessThan(4_000)
      if (what === 'nothing') continue
      // Without a token it is refused before its body is read; with one, when it does not come.
      expect([400, 401], what).toContain(replies[0]?.status)
      expect(['invalid', 'unauthorized'], what).toContain(replies[0]?.json?.error?.code)
    }
    expect(worst_ms).toBeLessThan(500)
  })

  test('because the server itself was stuck is told that, and not that it was wrong', async () => {
    const { served, port } = await impatient()
    const begun = [`POST /v1/task.create HTTP/1.1`, `Host: 127.0.0.1:${port}`, 'X-Slow: y']
    const asked = new Raw(connect(Number(port), '127.0.0.1')).write(...begun)
    await until('a part has arrived', () => asked.socket.bytesWritten > 0)
    expect((await send(served.url, '/readyz')).status).toBe(200)
    const stuck_until = performance.now() + 1_700
    while (performance.now() < stuck_until);
    const [reply] = await asked.closed()
    expect([reply?.status, reply?.json?.error?.code]).toEqual([503, 'unavailable'])
  })

  test('with a token too: the body that does not come has no effect', async () => {
    const { own, port } = await impatient()
    const { token } = await own.ok(['token', 'create', '--role', 'agent', '--agent', 'ada'])
    const asked = new Raw(connect(Number(port), '127.0.0.1')).write(
      `POST /v1/task.create HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      'Content-Length: 100',
      '',
      '{"title": "slow"}',
    )
    const [reply] = await asked.closed()
    expect([reply?.status, reply?.json?.error?.code]).toEqual([400, 'invalid'])
    expect(reply?.json?.error?.message).toMatch(/too long to arrive/)
    expect(await own.ok(['task', 'list'])).toEqual({ items: [], next: null })
  })
})
