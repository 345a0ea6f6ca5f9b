import { connect, type Socket } from 'node:net'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { after, nowMs, type Role } from './history.ts'
import { until } from './processes.ts'
import type { DaemonKeeper } from './daemon.ts'
import type { World } from './world.ts'

// Of util-linux; named here: in place, knip takes it for a program of a package.
const [PRLIMIT] = ['prlimit'] as const

/** Longer than every TTL in these worlds. */
const PAST_TTL_MS = 2_300
/** A daemon has to get on with something before it is worth being hit again. */
const SETTLED_MS = 1_500
/** One fault after the other, so close that many are under way at once. */
const EVERY_MS = 220

type Fault = (world: World) => Promise<void> | void

const daemonOf = (world: World) => world.scene.random.pick(world.daemons)
const pastTtl = ({ scene }: World) => PAST_TTL_MS + scene.random.below(500)

const killClient: Fault = ({ clients, scene }) => {
  const { proc } = scene.random.pick(clients.filter(({ plan }) => plan.mode === 'mixed'))
  if (proc && !proc.isOver && nowMs() - proc.since > 400) scene.kill(proc)
}

const stopClient: Fault = async (world) => {
  const { clients, scene } = world
  const { proc } = scene.random.pick(clients.filter(({ plan }) => plan.mode === 'mixed'))
  if (proc && !proc.isOver && nowMs() - proc.since > 400) {
    await scene.pause(proc.pid, proc.who, proc.role, pastTtl(world))
  }
}

const killFound =
  (...roles: Role[]): Fault =>
  ({ finder, scene }) => {
    const found = finder.all().filter(({ role }) => roles.includes(role))
    if (found.length === 0) return
    const { pid, who, role } = scene.random.pick(found)
    scene.killPid(pid, who, role)
  }

const stopFound =
  (...roles: Role[]): Fault =>
  async (world) => {
    const { finder, scene } = world
    const found = finder.all().filter(({ role }) => roles.includes(role))
    if (found.length === 0) return
    const { pid, who, role } = scene.random.pick(found)
    await scene.pause(pid, who, role, pastTtl(world))
  }

const killWrapper: Fault = ({ wrappers, scene }) => {
  const { proc } = scene.random.pick(wrappers)
  if (proc && !proc.isOver && nowMs() - proc.since > 150) scene.kill(proc)
}

const stopWrapper: Fault = async (world) => {
  const { proc } = world.scene.random.pick(world.wrappers)
  if (!proc || proc.isOver || nowMs() - proc.since < 150) return
  await world.scene.pause(proc.pid, proc.who, 'wrapper', pastTtl(world))
}

const killMcp: Fault = ({ mcp, scene }) => {
  if (mcp.proc && !mcp.proc.isOver && nowMs() - mcp.proc.since > 600) scene.kill(mcp.proc)
}

const stopMcp: Fault = async (world) => {
  const { proc } = world.mcp
  if (proc && !proc.isOver) await world.scene.pause(proc.pid, proc.who, 'mcp', pastTtl(world))
}

const killDaemon: Fault = (world) => {
  const daemon = daemonOf(world)
  if (!daemon.hasServed(SETTLED_MS)) return
  if (world.scene.random.chance(0.5)) daemon.kill()
  else daemon.killOnRequest(world.scene.random.below(4))
}

const stopDaemon: Fault = async (world) => {
  const daemon = daemonOf(world)
  if (daemon.hasServed(SETTLED_MS)) await daemon.pause(pastTtl(world))
}

/** Requests get through, and answers do not. */
const loseReplies: Fault = async (world) => {
  const { relay } = daemonOf(world)
  if (relay.mood !== 'pass') return
  relay.mood = 'cut'
  await after(300 + world.scene.random.below(500))
  relay.mood = 'pass'
  world.scene.counts.figure('replies lost', relay.lost)
  relay.lost = 0
}

/** Nothing gets through between agents and a daemon, and nobody is told. */
const partition: Fault = async (world) => {
  const daemon = daemonOf(world)
  const { relay } = daemon
  if (relay.mood !== 'pass') return
  world.scene.down(`relay of ${daemon.name}`)
  relay.mood = 'silent'
  await after(1_000 + world.scene.random.below(1_500))
  relay.mood = 'pass'
  relay.reset()
  world.scene.up(`relay of ${daemon.name}`)
}

/** Uses up the daemon's descriptors with connections that say nothing. */
const exhaust: Fault = async (world) => {
  const daemon = daemonOf(world)
  const { proc } = daemon
  if (!proc || !daemon.hasServed(SETTLED_MS)) return
  world.scene.down(`descriptors of ${daemon.name}`)
  const idle: Socket[] = []
  const limit = (soft: string) =>
    spawnSync(PRLIMIT, ['--pid', String(proc.pid), `--nofile=${soft}`]).status === 0
  if (limit(`${openFiles(proc.pid) + 3}:`)) {
    for (let i = 0; i < 40; i += 1) idle.push(idleAt(daemon))
    await after(1_500)
    limit('1024:')
  }
  for (const socket of idle) socket.destroy()
  await after(200)
  world.scene.up(`descriptors of ${daemon.name}`)
}

function idleAt({ port }: DaemonKeeper): Socket {
  return connect(port, '127.0.0.1').on('error', () => undefined)
}

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 64
  }
}

let isAway = false

/** The database is gone, all of its processes at once, and comes back. */
const killDatabase: Fault = async ({ database, scene }) => {
  if (!database || isAway) return
  isAway = true
  scene.down('database')
  await database.kill()
  scene.counts.killed('database')
  await after(scene.random.below(1_500))
  await database.start()
  scene.up('database')
  isAway = false
}

/** Nothing gets through between daemons and their database, and nobody is told. */
const cutLink: Fault = async ({ link, scene }) => {
  if (!link || link.mood !== 'pass' || isAway) return
  scene.down('link')
  link.mood = 'silent'
  await after(1_500 + scene.random.below(3_000))
  link.mood = 'pass'
  link.reset()
  scene.up('link')
}

const fillDisk: Fault = async (world) => {
  const { disk, scene } = world
  if (isAway) return
  isAway = true
  scene.down('disk')
  const give = disk!.fill()
  await after(1_000 + scene.random.below(1_500))
  give()
  if (!disk!.isWritable()) return
  scene.up('disk')
  isAway = false
}

/** The power fails: what was not synced is lost, and everything on the machine starts anew. */
const cutPower: Fault = async ({ disk, scene, everybody, finder, database }) => {
  if (isAway) return
  isAway = true
  let backUp: () => void = () => undefined
  scene.powered = new Promise((resolve) => (backUp = resolve))
  scene.down('power')
  scene.counts.figure('power losses', 1)
  const why = disk!.cutPower()
  if (why !== undefined) scene.violate('the rig itself', why)
  // Whoever lives on would find another folder when the disk is away.
  for (let living = 1; living > 0;) {
    const procs = everybody().filter(({ isOver }) => !isOver)
    for (const proc of procs) scene.kill(proc)
    const found = finder.all()
    for (const { pid, who, role } of found) scene.killPid(pid, who, role)
    await after(20)
    living = procs.length + found.length
  }
  await database?.kill()
  // What a program of ours had just started ends by itself in a moment.
  const late = performance.now() + 10_000
  for (let busy = disk!.powerUp(); busy !== undefined; busy = disk!.powerUp()) {
    if (performance.now() > late) return scene.violate('the rig itself', busy)
    await after(20)
  }
  await database?.start()
  backUp()
  scene.up('power')
  isAway = false
}

/** A second daemon wants the store. While the first serves it is refused; else it may serve. */
const rivalDaemon: Fault = async (world) => {
  const { scene } = world
  const [daemon] = world.daemons
  if (!daemon || daemon.rival || world.database) return
  const argv = [scene.bin, '--json', 'serve', '--port', '0']
  const env = { ...scene.env, LEASEHOLD_DIR: daemon.state }
  const rival = scene.spawn(`rival.${(rivals += 1)}`, 'daemon', argv, env)
  daemon.rival = rival
  const serves = () => rival.out.includes('"url"')
  await until(() => rival.isOver || serves(), 6_000)
  const both = serves() && !rival.isOver && daemon.hasServed(500)
  if (both) scene.violate('one daemon per store', `${rival.who} serves beside ${daemon.proc!.who}`)
  if (serves()) scene.counts.figure('rival daemons that served', 1)
  await until(() => rival.isOver, 1_000)
  if (!rival.isOver) scene.kill(rival)
  await rival.ended
  daemon.rival = undefined
}

/** A dispatcher of its own for a few seconds, killed in the middle of its work. */
const rivalDispatcher: Fault = async ({ scene, daemons }) => {
  const env = { ...scene.env, LEASEHOLD_DIR: daemons[0]!.state }
  const who = `dispatch.${(rivals += 1)}`
  const rival = scene.spawn(who, 'dispatcher', [scene.bin, '--json', 'dispatch'], env)
  await until(() => rival.isOver, 2_000 + scene.random.below(4_000))
  if (rival.isOver) return
  if (scene.random.chance(0.3)) await scene.pause(rival.pid, rival.who, 'dispatcher', PAST_TTL_MS)
  scene.kill(rival)
  await rival.ended
}

let rivals = 0

interface Weighted {
  name: string
  weight: number
  fault: Fault
}

const ALWAYS: Weighted[] = [
  { name: 'kill a client', weight: 10, fault: killClient },
  { name: 'stop a client', weight: 5, fault: stopClient },
  { name: 'kill a wrapper', weight: 5, fault: killWrapper },
  { name: 'stop a wrapper', weight: 1, fault: stopWrapper },
  { name: 'kill a watcher or command', weight: 6, fault: killFound('watcher', 'command') },
  { name: 'stop a watcher or command', weight: 2, fault: stopFound('watcher', 'command') },
  { name: 'kill the MCP server', weight: 2, fault: killMcp },
  { name: 'stop the MCP server', weight: 1, fault: stopMcp },
  { name: 'kill a daemon', weight: 4, fault: killDaemon },
  { name: 'stop a daemon', weight: 1, fault: stopDaemon },
  { name: 'a second daemon', weight: 1, fault: rivalDaemon },
  { name: 'lose replies', weight: 3, fault: loseReplies },
  { name: 'partition', weight: 1, fault: partition },
  { name: 'use up descriptors', weight: 1, fault: exhaust },
]

const QUEUE: Weighted[] = [
  { name: 'kill a runner', weight: 3, fault: killFound('runner') },
  { name: 'stop a runner', weight: 1, fault: stopFound('runner') },
  { name: 'kill an agent command', weight: 6, fault: killFound('agent command') },
  { name: 'stop an agent command', weight: 1, fault: stopFound('agent command') },
  { name: 'a second dispatcher', weight: 1, fault: rivalDispatcher },
]

function faultsFor(world: World): Weighted[] {
  const faults = [...ALWAYS]
  if (world.hasQueue) faults.push(...QUEUE)
  if (world.database) {
    faults.push({ name: 'kill the database', weight: 1, fault: killDatabase })
    faults.push({ name: 'cut the link to the database', weight: 1, fault: cutLink })
  }
  const { disk } = world.plan
  if (disk === 'small') faults.push({ name: 'fill the disk', weight: 3, fault: fillDisk })
  if (disk === 'failing') faults.push({ name: 'I/O errors', weight: 3, fault: fillDisk })
  if (disk === 'journaled') faults.push({ name: 'cut the power', weight: 3, fault: cutPower })
  return faults
}

/** Does one thing after the other to a world, until its time is up and all of it is over. */
export async function wreak(world: World, until_ms: number): Promise<void> {
  isAway = false
  const faults = faultsFor(world)
  const total = faults.reduce((sum, { weight }) => sum + weight, 0)
  const underWay: Promise<void>[] = []
  const { scene } = world
  await after(2_000)
  while (nowMs() < until_ms && !world.disk?.hasGivenUp) {
    let at = scene.random.next() * total
    const { name, fault } = faults.find(({ weight }) => (at -= weight) < 0)!
    scene.counts.fault(name)
    scene.note('fault', name)
    underWay.push(
      Promise.resolve(fault(world)).catch((error: Error) => {
        scene.note('fault failed', `${name}: ${error.stack}`)
      }),
    )
    await after(EVERY_MS * (0.5 + scene.random.next()))
  }
  await Promise.all(underWay)
}
