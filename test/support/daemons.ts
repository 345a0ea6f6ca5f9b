import { onTestFinished } from 'vitest'
import { type Client, connect, type ConnectOptions } from '../../src/index.ts'
import type { Options, Running, Sandbox } from './processes.ts'

/** A server in a process of its own, and where it is. */
export interface Daemon {
  running: Running
  url: string
  port: number
}

/** Starts a server on the sandbox's store, and stops it when the test has ended. */
export async function daemonOn(place: Sandbox, port = 0, options: Options = {}): Promise<Daemon> {
  const args = ['--json', 'serve', '--port', String(port)]
  const running = place.start(args, { input: '', ...options })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await running.ended
  })
  const [, url] = await running.said(/"url":"([^"]+)"/)
  return { running, url: url!, port: Number(new URL(url!).port) }
}

/** kill -9, and a new one on the same port. */
export async function killAndRestart(place: Sandbox, daemon: Daemon): Promise<Daemon> {
  daemon.running.kill('SIGKILL')
  await daemon.running.ended
  return daemonOn(place, daemon.port)
}

/** A client that is closed when the test has ended. */
export async function clientOf(options: ConnectOptions): Promise<Client> {
  const client = await connect(options)
  onTestFinished(() => client.close())
  return client
}

/** A client that may do no more than a token for `agent` allows. */
export async function agentClient(place: Sandbox, { url }: Daemon, agent: string): Promise<Client> {
  const args = ['token', 'create', '--role', 'agent', '--agent', agent]
  const { token } = await place.ok(args)
  return clientOf({ url, token, retry_seconds: 20 })
}
