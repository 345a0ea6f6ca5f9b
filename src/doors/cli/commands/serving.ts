import { openSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../../core/refusal.ts'
import { serverIn, type ServerFile } from '../../../reach/server_file.ts'
import { VERSION } from '../../../daemon/version.ts'
import { folderOf } from '../../../stores/open.ts'
import { isStopped } from '../../../machine/process.ts'
import type { Enter } from './operations.ts'
import { offerApproval } from './config.ts'
import { type Context, refuseWithToken } from '../context.ts'
import { linkHint, makeLink } from './dashboard.ts'
import { print } from '../show/show.ts'

const DEFAULT_PORT = '4747'
const START_MS = 15_000
const LOOK_MS = 25
const OTHERS_MS = 2_000
const HEALTH_MS = 2_000

const welcome = (path: string, url: string) =>
  [
    `${pc.green('serving')} ${path} at ${pc.bold(url)}`,
    `  docs    ${url}/docs`,
    '  tokens  leasehold token create --role agent --agent builder-1',
    '  MCP     leasehold mcp, or this address with /mcp and a token',
    pc.dim('  The command line finds this server by itself. Ctrl-C stops it.'),
  ].join('\n')

/** The daemon: in the foreground (`serve`), or in the background if it does not run yet (`up`). */
export function addServing(root: Command, enter: Enter): void {
  root
    .command('serve')
    .description('Serve this store on 127.0.0.1 until stopped: HTTP, MCP and events.')
    .option('--port <n>', 'the port; 0 takes any that is free', DEFAULT_PORT)
    .action(async ({ port }: { port: string }, self: Command) => {
      await serveHere(enter(self.optsWithGlobals()), portOf(port))
    })
  root
    .command('up')
    .description('Start the server in the background, unless one is running.')
    .option('--port <n>', 'the port; 0 takes any that is free', DEFAULT_PORT)
    .option('--viewer', 'print a link that lets someone look but change nothing')
    .action(async ({ port, viewer }: { port: string; viewer?: boolean }, self: Command) => {
      const context = enter(self.optsWithGlobals())
      await offerApproval(context)
      const server = (await running(context)) ?? (await startBehind(context, portOf(port)))
      const { pid, url } = server
      if (context.json) return print(JSON.stringify({ pid, url }))
      print(`${pc.green('serving')} at ${pc.bold(url)} (PID: ${pid}); docs at ${url}/docs`)
      await printLink(context, viewer ? 'viewer' : 'admin')
    })
}

/**
 * A caller that may not make a link is served all the same. A link signs in as an admin, so it is
 * for the person in front of a terminal, never for a log.
 */
async function printLink(context: Context, role: 'viewer' | 'admin'): Promise<void> {
  if (!process.stdout.isTTY) return print(pc.dim('  dashboard  leasehold dashboard prints a link'))
  const made = await makeLink(context, role).catch(() => undefined)
  if (made) print(`  dashboard  ${pc.bold(made.link)}\n${pc.dim(linkHint(role))}`)
}

function portOf(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw new Refusal('invalid', `--port is not a port: ${text}`, {
    next: 'Give a number, e.g. 4747.',
  })
}

async function serveHere(context: Context, port: number): Promise<void> {
  refuseWithToken(context.env)
  const { outliveRejections, serve } = await import('../../../daemon/main.ts')
  outliveRejections()
  const served = await serve(context.place, port, VERSION)
  const { url } = served
  if (context.json) print(JSON.stringify({ pid: process.pid, url }))
  else {
    print(welcome(context.place.path, url))
    await printLink(context, 'admin')
  }
  const stopped = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => resolve(undefined))
  })
  const why = await Promise.race([stopped, served.ended])
  await served.stop()
  if (why !== undefined) {
    throw new Refusal('unavailable', `The server had to stop: ${why}`, {
      next: 'If another one serves this store now, the command line finds it: leasehold doctor',
    })
  }
}

/** The daemon that serves this store, if its process is there and answers. */
async function running(context: Context): Promise<ServerFile | undefined> {
  const server = serverIn(folderOf(context.place))
  if (!server) return undefined
  if (isStopped(server.pid)) {
    throw new Refusal('unavailable', `The server (PID: ${server.pid}) is stopped`, {
      next: `Let it go on: kill -CONT ${server.pid}`,
      details: { pid: server.pid },
    })
  }
  const signal = AbortSignal.timeout(HEALTH_MS)
  const answers = fetch(new URL('/healthz', server.url), { signal }).then(({ ok }) => ok)
  return (await answers.catch(() => false)) ? server : undefined
}

/** Started from within a run, it is no part of that run: it would be ended with it. */
function ownEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofRun = /^LEASEHOLD_(?:MARK|RUN|TASK|LOCK|FENCE|AGENT)$/
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofRun.test(name)))
}

/** Detached, so that it outlives this terminal; what it says goes into the state folder. */
async function startBehind(context: Context, port: number): Promise<ServerFile> {
  await context.store().write(() => undefined)
  const { spawn } = process.getBuiltinModule('node:child_process')
  const log = openSync(join(folderOf(context.place), 'server.log'), 'a', 0o600)
  const child = spawn(process.execPath, [process.argv[1]!, 'serve', '--port', String(port)], {
    detached: true,
    env: ownEnvironment(context.env),
    stdio: ['ignore', log, log],
  })
  let until = performance.now() + START_MS
  // Somebody else's `up` may have been first: then ours ends, and theirs is about to answer.
  child.once('exit', () => (until = Math.min(until, performance.now() + OTHERS_MS)))
  while (performance.now() < until) {
    const server = await running(context)
    if (server) {
      child.unref()
      return server
    }
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
  throw new Refusal('unavailable', 'The server did not start', {
    next: `Its log says why: ${join(folderOf(context.place), 'server.log')}`,
  })
}
