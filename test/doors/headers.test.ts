import { afterAll, beforeAll, expect, test } from 'vitest'
import { Sandbox } from '../support/processes.ts'
import { finish, send, type Served, startDaemon } from './serving.ts'

const place = new Sandbox()
let daemon: Served

beforeAll(async () => {
  daemon = await startDaemon(place)
})

afterAll(async () => {
  await finish(place)
  await place.close()
})

const ROUTES = ['/', '/docs', '/openapi.json', '/healthz', '/metrics', '/nothing', '/v1/lock.list']

test('no page of another site may frame or load any answer', async () => {
  for (const path of ROUTES) {
    for (const token of [daemon.secret, undefined]) {
      const { headers } = await send(daemon.url, path, { token })
      expect({ path, corp: headers['cross-origin-resource-policy'] }).toEqual({
        path,
        corp: 'same-origin',
      })
      expect({ path, frame: headers['x-frame-options'] }).toEqual({ path, frame: 'DENY' })
      expect(headers['content-security-policy'], path).toContain("frame-ancestors 'none'")
    }
  }
})

test('an answer to what is not HTTP has the same headers', async () => {
  const socket = daemon.socket()
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write('NOT HTTP AT ALL\r\n\r\n')
  await new Promise((resolve) => socket.once('close', resolve))
  const text = Buffer.concat(chunks).toString()
  expect(text).toMatch(/^HTTP\/1\.1 400/)
  expect(text).toContain('cross-origin-resource-policy: same-origin')
  expect(text).toContain('x-frame-options: DENY')
})

test('HEAD is answered without a body, a stream of events too', async () => {
  for (const path of [...ROUTES, '/v1/events']) {
    const socket = daemon.socket()
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    const lines = [
      `HEAD ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${daemon.port}`,
      `Authorization: Bearer ${daemon.secret}`,
      'Connection: close',
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    await new Promise((resolve) => socket.once('close', resolve))
    const [, body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
    expect({ path, body }).toEqual({ path, body: '' })
  }
})
