import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import pc from 'picocolors'
import { attempt } from '../../../core/attempt.ts'
import { Refusal, REFUSALS } from '../../../core/refusal.ts'
import { sha256 } from '../../../machine/digest.ts'
import { serverIn, type ServerFile, serverName, whoHas } from '../../../reach/server_file.ts'
import { VERSION } from '../../../machine/version.ts'
import { folderOf } from '../../../stores/open.ts'
import { host, isStopped, processFact } from '../../../machine/process.ts'
import type { Enter } from './operations.ts'
import { offerApproval } from './config.ts'
import type { Context } from '../context.ts'
import { refuseOwnTrust, refuseWithToken } from '../family.ts'
import { linkHint, makeLink } from '../dashboard_link.ts'
import { print } from '../show/show.ts'
import { io } from '../../io.ts'

const DEFAULT_PORT = 4747
/** The first repository has the default port, each other one its own: the same every time. */
const OTHER_PORTS = 1_000
const START_MS = 15_000
const LOOK_MS = 25
const OTHERS_MS = 2_000
const HEALTH_MS = 2_000
const STOP_MS = 15_000

interface UpOptions {
  port?: string
  viewer?: boolean
  link?: boolean
}

const PORT_FLAG = [
  '--port <n>',
  `the port; 0 takes any that is free (default: ${DEFAULT_PORT}, else one of its own)`,
] as const

const welcome = (name: string, path: string, url: string) =>
  [
    `${pc.green('serving')} ${name} (${path}) at ${pc.bold(url)}`,
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
    .option(...PORT_FLAG)
    .action(async ({ port }: { port?: string }, self: Command) => {
      await serveHere(enter(self.optsWithGlobals()), portOf(port))
    })
  root
    .command('up')
    .description('Start the server in the background, unless one is running.')
    .option(...PORT_FLAG)
    .option('--link', 'print a link that opens the dashboard, signed in, also where nobody looks')
    .option('--viewer', 'print a link that lets someone look but change nothing')
    .action(async ({ port, viewer, link }: UpOptions, self: Command) => {
      const context = enter(self.optsWithGlobals())
      refuseOwnTrust(context.family(), context.env)
      await offerApproval(context)
      const found = await running(context)
      const server = found ?? (await startBehind(context, portOf(port)))
      const { pid, url } = server
      const name = serverName(folderOf(context.place))
      const role = viewer ? 'viewer' : 'admin'
      const made = link ? { role, ...(await makeLink(context, role)) } : undefined
      if (context.json) return print(JSON.stringify({ pid, url, name, ...made }))
      print(`${pc.green('serving')} ${name} at ${pc.bold(url)} (PID: ${pid}); docs at ${url}/docs`)
      if (port === undefined) tellOfPort(url)
      else if (found && new URL(url).port !== port) {
        print(
          pc.yellow(
            `  --port ${port} is ignored: this server runs already. leasehold down ends it`,
          ),
        )
      }
      await printLink(context, role, made)
    })
  root
    .command('down')
    .description('Stop the server of this store. Agents that it has started go on.')
    .action(async (_, self: Command) => stopHere(enter(self.optsWithGlobals())))
}

/** Why this server is not where people expect one. */
function tellOfPort(url: string): void {
  if (Number(new URL(url).port) === DEFAULT_PORT) return
  print(pc.dim(`  port ${DEFAULT_PORT} is in use by ${whoHas(DEFAULT_PORT)}`))
}

async function stopHere(context: Context): Promise<void> {
  const folder = folderOf(context.place)
  const server = serverIn(folder)
  const [name, pid] = [serverName(folder), server?.pid]
  if (server) {
    // Its file goes first, and its store is closed last: it is down when it is no more.
    const { start = -1, seat = '' } = server
    const isUp = () => processFact({ host, seat, pid: server.pid, start }) === 'alive'
    // One that was stopped has to go on in order to end; one that has just ended is no trouble.
    for (const each of ['SIGTERM', 'SIGCONT'] as const)
      attempt(() => process.kill(server.pid, each), false)
    await until(() => !isUp(), STOP_MS)
    if (isUp()) {
      throw new Refusal('unavailable', `The server of ${name} (PID: ${pid}) does not end`, {
        next: `See what keeps it: ${logOf(folder)}. To end it at once: kill -9 ${pid}`,
      })
    }
  }
  if (context.json) print(JSON.stringify({ stopped: server !== undefined, pid: pid ?? null, name }))
  else if (server) print(`${pc.green('stopped')} the server of ${name} (PID: ${pid})`)
  else print(`No server of ${name} runs.`)
}

const logOf = (folder: string) => join(folder, 'server.log')

async function until<T>(look: () => T | Promise<T>, most_ms: number): Promise<T> {
  const last_ms = performance.now() + most_ms
  for (;;) {
    const found = await look()
    if (found || performance.now() > last_ms) return found
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
}

/**
 * A caller that may not make a link is served all the same. A link signs in as an admin, so it is
 * for the person in front of a terminal, never for a log.
 */
async function printLink(
  context: Context,
  role: 'viewer' | 'admin',
  asked?: { link: string },
): Promise<void> {
  if (!asked && !io().stdout.isTTY) {
    return print(pc.dim('  dashboard  leasehold up --link prints a link'))
  }
  const made = asked ?? (await makeLink(context, role).catch(() => undefined))
  if (made) print(`  dashboard  ${pc.bold(made.link)}\n${pc.dim(linkHint(role))}`)
}

/** Undefined when nothing was said: then another port than the default will do. */
function portOf(text: string | undefined): number | undefined {
  const port = text === undefined ? undefined : Number(text)
  if (port === undefined || (Number.isInteger(port) && port >= 0 && port < 65_536)) return port
  throw new Refusal('invalid', `--port is not a port: ${text}`, {
    next: 'Give a number, e.g. 4747.',
  })
}

const ownPort = (folder: string) =>
  DEFAULT_PORT + 1 + (Number.parseInt(sha256(folder).slice(0, 8), 16) % OTHER_PORTS)

async function serveHere(context: Context, port: number | undefined): Promise<void> {
  refuseWithToken(context.env)
  refuseOwnTrust(context.family(), context.env)
  const { outliveRejections, serve } = await import('../../../daemon/main.ts')
  outliveRejections()
  const folder = folderOf(context.place)
  const ports = port ?? [DEFAULT_PORT, ownPort(folder), 0]
  // From the beginning: whoever finds the server may end it before it has said that it is there.
  const stopped = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => resolve(undefined))
  })
  const served = await serve(context.place, ports, VERSION)
  const { url } = served
  const name = serverName(folder)
  if (context.json) print(JSON.stringify({ pid: process.pid, url, name }))
  else {
    print(welcome(name, context.place.path, url))
    if (port === undefined) tellOfPort(url)
    await printLink(context, 'admin')
  }
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
async function startBehind(context: Context, port: number | undefined): Promise<ServerFile> {
  await context.store().write(() => undefined)
  const { spawn } = process.getBuiltinModule('node:child_process')
  const path = logOf(folderOf(context.place))
  const log = openSync(path, 'a+', 0o600)
  const { size: before } = fstatSync(log)
  const at = port === undefined ? [] : ['--port', String(port)]
  const child = spawn(process.execPath, [process.argv[1]!, 'serve', ...at], {
    detached: true,
    env: ownEnvironment(context.env),
    stdio: ['ignore', log, log],
  })
  let exit: number | null | undefined
  child.once('exit', (code) => (exit = code))
  const said = () => textFrom(log, before)
  const server = await until(async () => (await running(context)) ?? exit !== undefined, START_MS)
  try {
    // Somebody else's `up` may have been first: then ours ends, and theirs is about to answer.
    const isLate = server === true && said().includes(ALREADY)
    const found = isLate ? await until(() => running(context), OTHERS_MS) : server
    if (typeof found !== 'object') throw notStarted(path, said(), exit)
    child.unref()
    return found
  } finally {
    closeSync(log)
  }
}

const ALREADY = 'already running on this database'
const SAID_MAX = 4_096

function textFrom(file: number, start: number): string {
  const buffer = Buffer.alloc(SAID_MAX)
  return buffer.toString('utf8', 0, readSync(file, buffer, 0, SAID_MAX, start))
}

/** What the server itself said, and under its own code; its log has the rest. */
function notStarted(log: string, said: string, exit: number | null | undefined): Refusal {
  const [, why, advice] = /^error: (.+?)(?:\n {2}next: (.+))?$/m.exec(said) ?? []
  const code = (['invalid', 'forbidden', 'damaged', 'internal'] as const).find(
    (each) => REFUSALS[each].exit === exit,
  )
  return new Refusal(code ?? 'unavailable', why ?? 'The server did not start', {
    next: advice ?? `Its log says why: ${log}`,
    details: { log },
  })
}
