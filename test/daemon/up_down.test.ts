import { mkdirSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { send, servingPlace } from '../doors/serving.ts'
import { because, isAlive, type Sandbox } from '../support/processes.ts'

/** Undefined where the port cannot be had. */
function listening(port: number): Promise<Server | undefined> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

/** Listens until the test ends; where somebody else does so already, that is as good. */
async function taken(port: number): Promise<number> {
  const server = await listening(port)
  onTestFinished(() => void server?.close())
  return (server?.address() as AddressInfo | undefined)?.port ?? port
}

/** A repository of its own, whose server is stopped when the test ends. */
function repository(place: Sandbox, name: string) {
  const cwd = place.path(name)
  mkdirSync(`${cwd}/.leasehold`, { recursive: true })
  const options = { cwd, env: { LEASEHOLD_DIR: undefined } }
  onTestFinished(async () => void (await place.cli(['down'], options)))
  return options
}

test('down stops the server, says which, and is content when none runs', async () => {
  const place = servingPlace()
  const { pid, url } = await place.ok(['up', '--port', '0'])
  expect(await place.ok(['down'])).toEqual({ stopped: true, pid, name: 'state' })
  expect(isAlive(pid as number)).toBe(false)
  await expect(send(url as string, '/healthz')).rejects.toThrow('ECONNREFUSED')
  expect(await place.ok(['down'])).toEqual({ stopped: false, pid: null, name: 'state' })
})

test('down ends a server that is stopped by a signal, too', async () => {
  const place = servingPlace()
  const { pid } = await place.ok(['up', '--port', '0'])
  process.kill(pid as number, 'SIGSTOP')
  expect(await place.ok(['down'])).toMatchObject({ stopped: true })
  expect(isAlive(pid as number)).toBe(false)
})

test('up on a port that was asked for and is taken says who has it, and what to do', async () => {
  const place = servingPlace()
  const port = await taken(0)
  const { message, next } = await place.refused(['up', '--port', String(port)], 'unavailable', 75)
  expect(message).toMatch(new RegExp(`^Port ${port} is in use by \\S+ \\(PID: ${process.pid}\\)$`))
  expect(next).toContain('--port 0')
})

test('of two repositories each has a server with its name, and a port that stays', async () => {
  await taken(4747)
  const place = servingPlace()
  const [web, shop] = [repository(place, 'web'), repository(place, 'shop')]
  const first = await place.ok(['up'], web)
  expect(first).toMatchObject({ name: 'web' })
  expect(first.url).not.toBe('http://127.0.0.1:4747')
  const second = await place.cli(['up'], shop)
  expect(second).toMatchObject({ code: 0, err: '' })
  expect(second.out).toMatch(/^serving shop at http/)
  expect(second.out).toContain('port 4747 is in use by ')
  const port = new URL(first.url as string).port
  const { message } = await place.refused(['serve', '--port', port], 'unavailable', 75)
  expect(message).toBe(`Port ${port} is in use by the leasehold server of web (PID: ${first.pid})`)
  await place.ok(['down'], web)
  expect(await place.ok(['up'], web)).toMatchObject({ url: first.url })
})

test('up --port 80 serves: clients leave that port out of the host', async ({ skip }) => {
  if (!(await isFree(80))) skip(because('port 80 is not for this login to take, or in use'))
  const place = servingPlace()
  const { url } = await place.ok(['up', '--port', '80'])
  expect(url).toBe('http://127.0.0.1:80')
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(await place.ok(['task', 'list'])).toEqual({ items: [], next: null })
  expect((await send(url as string, '/healthz', { headers: { host: 'evil' } })).status).toBe(403)
})

async function isFree(port: number): Promise<boolean> {
  const server = await listening(port)
  if (!server) return false
  await new Promise((resolve) => void server.close(resolve))
  return true
}
