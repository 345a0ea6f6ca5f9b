import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { askedWith } from '../src/doors/http/caller.ts'
import { guard, loopbackHosts, readJson } from '../src/doors/http/guard.ts'
import { Access } from '../src/operations/access.ts'
import { openStore } from './claims.ts'

/**
 * Serves all that a call over HTTP costs except its operation, with the daemon's own checks of
 * Host, Origin, token and body: `echo STORE`. Prints where it listens; ends with its process.
 */
export async function echo(args: string[]): Promise<void> {
  const [path] = args as [string]
  const access = new Access(openStore(path), 'no admin comes here')
  let hosts = new Set<string>()
  const app = new Hono()
  app.use(
    '*',
    guard(() => hosts),
  )
  app.post('/echo', async (c) => {
    await access.bearerOf(askedWith(c))
    return c.json(await readJson(c.req.raw))
  })
  const server = createServer(getRequestListener(app.fetch))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  hosts = loopbackHosts(port)
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }))
}
