import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { environ, killAll } from '../support/dispatching.ts'
import { type Json, type Served, startDaemon } from '../doors/serving.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { BIN, isAlive, Sandbox, until } from '../support/processes.ts'

// Of util-linux and iproute2. Named here: in place, knip takes them for programs of packages.
const [UNSHARE, NSENTER, IP, BRIDGE] = ['unshare', 'nsenter', 'ip', 'bridge'] as const
const SPACES = ['--uts', '--pid', '--net', '--mount', '--fork', '--mount-proc', '--kill-child']

/** Whether this login may make hosts of its own: a name, pids and a network for each. */
export const isApart =
  process.env['HOSTS'] !== 'plain' && spawnSync(UNSHARE, [...SPACES, 'true']).status === 0

/** Passes bytes on, from whoever connects here. It can stop doing so, and close nothing. */
class Relay {
  private readonly server: Server
  private readonly pairs = new Set<[Socket, Socket]>()
  private isStopped = false

  constructor(private readonly to: NetConnectOpts) {
    this.server = createServer((near) => this.join(near))
  }

  listen(host: string, port = 0): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, host, () => {
        resolve((this.server.address() as { port: number }).port)
      })
    })
  }

  private join(near: Socket): void {
    const pair: [Socket, Socket] = [near, connect(this.to)]
    this.pairs.add(pair)
    for (const each of pair) {
      each.setNoDelay(true)
      each.on('error', () => this.part(pair))
      each.on('close', () => this.part(pair))
    }
    if (!this.isStopped) flow(pair)
  }

  private part(pair: [Socket, Socket]): void {
    this.pairs.delete(pair)
    for (const each of pair) each.destroy()
  }

  stop(): void {
    this.isStopped = true
    for (const [a, b] of this.pairs) {
      a.unpipe(b).pause()
      b.unpipe(a).pause()
    }
  }

  goOn(): void {
    this.isStopped = false
    for (const pair of this.pairs) flow(pair)
  }

  close(): void {
    this.server.close()
    for (const pair of this.pairs) this.part(pair)
  }
}

function flow([a, b]: [Socket, Socket]): void {
  a.pipe(b)
  b.pipe(a)
}

const ip = (...args: string[]) => execFileSync(IP, args, { encoding: 'utf8', stdio: 'pipe' })

let cables = 0

/** A switch of our own, and the database behind it. Each host has a cable to it. */
class Network {
  readonly bridge = `lh${process.pid}b`
  readonly net = `10.${100 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 250}`
  private readonly mac: string
  private made = 0

  constructor() {
    ip('link', 'add', this.bridge, 'type', 'bridge')
    onTestFinished(() => void ip('link', 'del', this.bridge))
    const mac = /link\/ether (\S+)/.exec(ip('link', 'show', this.bridge))![1]!
    // Said, it stays: else a bridge takes that of its cables.
    ip('link', 'set', this.bridge, 'address', mac)
    this.mac = mac
    ip('addr', 'add', `${this.net}.1/24`, 'dev', this.bridge)
    ip('link', 'set', this.bridge, 'up')
  }

  /** Connects the host whose first process has this pid, and returns its cable. */
  connect(pid: number): string {
    this.made += 1
    // Not used again: the kernel takes its time to forget the one of a host that is off.
    const cable = `lh${process.pid}h${(cables += 1)}`
    onTestFinished(() => void spawnSync(IP, ['link', 'del', cable]))
    const inside = ['-t', String(pid), '-n', 'ip']
    const there = (...args: string[]) => execFileSync(NSENTER, [...inside, ...args])
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid))
    ip('link', 'set', cable, 'master', this.bridge, 'up')
    const address = `${this.net}.${this.made + 1}`
    there('addr', 'add', `${address}/24`, 'dev', 'eth0')
    there('link', 'set', 'eth0', 'up')
    // Both know the other's card for good, so that a cut cable is not told from a slow one.
    there('neigh', 'replace', `${this.net}.1`, 'lladdr', this.mac, 'dev', 'eth0')
    const own = /ether (\S+)/.exec(there('link', 'show', 'eth0').toString())![1]!
    ip('neigh', 'replace', address, 'lladdr', own, 'dev', this.bridge)
    return cable
  }
}

/** A socket among files is seen from both networks; on the host, it leads to the daemon. */
const DOOR = `
const { connect, createServer } = require('node:net')
const [, path, port] = process.argv
const door = createServer((near) => {
  const far = connect(Number(port), '127.0.0.1')
  for (const each of [near, far]) each.on('error', () => [near, far].map((one) => one.destroy()))
  near.pipe(far).pipe(near)
})
door.listen(path, () => console.log('open'))`

/** A machine with a daemon on the common database, or the nearest thing to one. */
export class Host {
  readonly place = new Sandbox()
  daemon!: Served
  private first: number | undefined
  private cable = ''
  private relay!: Relay

  constructor(
    readonly name: string,
    private readonly url: string,
    private readonly network: Network | undefined,
  ) {
    onTestFinished(async () => {
      await this.die()
      await this.place.close()
    })
  }

  /** Switches it on and connects it to the database; no daemon runs yet. */
  async start(): Promise<void> {
    const to = new URL(this.url)
    this.relay = relayTo({ host: to.hostname, port: Number(to.port) })
    if (this.network) {
      const script = `hostname ${this.name}; ip link set lo up; echo up; while :; do
        sleep 1000 & wait; done`
      const init = this.place.start([...SPACES, 'sh', '-c', script], { program: [UNSHARE] })
      await init.said(/up/)
      const children = `/proc/${init.pid}/task/${init.pid}/children`
      this.first = Number(readFileSync(children, 'utf8'))
      this.cable = this.network.connect(this.first)
      to.hostname = `${this.network.net}.1`
    }
    to.port = String(await this.relay.listen(to.hostname))
    this.place.env['LEASEHOLD_STORE'] = to.href
  }

  /** The program line for something that shall run on this host. */
  private on(...program: string[]): string[] {
    if (this.first === undefined) return program
    const spaces = ['-m', '-u', '-n', '-p']
    return [NSENTER, '-t', String(this.first), ...spaces, '--', ...program]
  }

  /** Runs the command line there, whatever comes of it. */
  cli(...args: string[]) {
    return this.place.cli(args, { program: this.on(process.execPath, BIN) })
  }

  /** The same, which must go well. */
  async ask(...args: string[]): Promise<Json> {
    return this.place.ok(args, { program: this.on(process.execPath, BIN) })
  }

  /** Starts its daemon. Callers of this machine reach it at its address all the same. */
  async serve(): Promise<Served> {
    const program = this.on(process.execPath, BIN)
    if (!this.network) return (this.daemon = await startDaemon(this.place, { program }))
    const path = this.place.path('door')
    const port = await relayTo({ path }).listen('127.0.0.1')
    this.daemon = await startDaemon(this.place, { program, flags: ['--port', String(port)] })
    const door = this.place.start(['-e', DOOR, path, String(port)], {
      program: this.on(process.execPath),
    })
    await door.said(/open/)
    return this.daemon
  }

  /** From now on nothing comes through between this host and the database; nobody is told. */
  cut(): void {
    if (this.network) execFileSync(BRIDGE, ['link', 'set', 'dev', this.cable, 'state', '0'])
    else this.relay.stop()
  }

  heal(): void {
    if (this.network) execFileSync(BRIDGE, ['link', 'set', 'dev', this.cable, 'state', '3'])
    else this.relay.goOn()
  }

  /** Pulls the plug: all of its processes end at once. */
  async die(): Promise<void> {
    // Without its first process the kernel ends all the others of a host.
    await killAll(this.first === undefined ? this.processes() : [this.first])
    await until(`${this.name} is off`, () => this.processes().length === 0)
  }

  /** Also runners and agents: all that know its folder. */
  private processes(): number[] {
    const pids = readdirSync('/proc').map(Number)
    const isOurs = (pid: number) => environ(pid).includes(this.place.folder)
    return pids.filter((pid) => pid > 0 && pid !== process.pid && isAlive(pid) && isOurs(pid))
  }
}

function relayTo(to: NetConnectOpts): Relay {
  const relay = new Relay(to)
  onTestFinished(() => relay.close())
  return relay
}

/** Hosts of these names on one database of their own; their daemons are not started yet. */
export async function hosts(...names: string[]): Promise<Host[]> {
  const network = isApart ? new Network() : undefined
  const url = postgresUrl(temporaryFolder())
  const made = names.map((name) => new Host(name, url, network))
  for (const host of made) await host.start()
  return made
}
