import { join } from 'node:path'
import type { DaemonKeeper } from './daemon.ts'
import { after, type Asked, Notes, type Told } from './history.ts'
import { type Env, jsonOf, type Proc, signal } from './processes.ts'
import type { Scene } from './scene.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
type Json = any

/** How a command gets to the store itself although a daemon runs. */
export interface Direct {
  env: Env
  before: readonly string[]
}

/** Commands that somebody types, one after the other, some of them killed on the way. */
export class CommandLine {
  proc: Proc | undefined
  private readonly env: Env
  private readonly notes: Notes
  private readonly door: string
  private readonly before: readonly string[]
  private asked = 0

  /** `direct`: it does not see the daemon, and opens the store itself. */
  constructor(
    private readonly scene: Scene,
    private readonly agent: string,
    daemon: DaemonKeeper,
    direct: Direct | undefined,
  ) {
    this.door = direct ? 'direct' : 'cli'
    this.env = { ...scene.env, LEASEHOLD_DIR: daemon.state, ...direct?.env }
    this.before = direct?.before ?? []
    this.notes = new Notes(join(scene.calls, `${agent}.calls`))
  }

  async keep(): Promise<void> {
    while (!this.scene.isOver) {
      if (this.scene.random.chance(0.6)) await this.hold()
      else await this.add()
      await after(this.scene.random.below(150))
    }
    this.notes.close()
  }

  /** Runs a command to its end, or kills it on the way; then it is asked again under its id. */
  private async ask(asked: Omit<Asked, 'agent' | 'door' | 'request'>, args: string[]) {
    const request = `${this.agent}-${(this.asked += 1)}`
    let answer: { told: Told; json: Json } = { told: { outcome: 'unknown' }, json: undefined }
    for (let tries = 0; tries < 3 && answer.told.outcome === 'unknown'; tries += 1) {
      if (tries > 0 && this.scene.isOver) return answer
      const end = this.notes.ask({ ...asked, request, agent: this.agent, door: this.door })
      answer = await this.run([...args, '--agent', this.agent, '--request-id', request], tries)
      const { told, json } = answer
      const fences = json?.fence !== undefined && asked.op === 'lock.acquire' ? [json.fence] : []
      end({
        ...told,
        ...(fences.length > 0 && { fences }),
        ...(asked.op === 'task.create' && json?.id !== undefined && { task: json.id }),
      })
    }
    return answer
  }

  private async run(args: string[], tries: number): Promise<{ told: Told; json: Json }> {
    const { scene } = this
    await scene.powered
    const who = `${this.agent}.${this.asked}.${tries}`
    const proc = scene.spawn(who, 'cli', [scene.bin, '--json', ...args], this.env, this.before)
    this.proc = proc
    // A cold start takes most of the time; what can go wrong comes after it.
    if (!scene.isOver && scene.random.chance(0.45)) {
      const delay = 40 + scene.random.below(250)
      setTimeout(() => {
        if (proc.isOver) return
        if (scene.random.chance(0.85)) scene.kill(proc)
        else void scene.pause(proc.pid, who, 'cli', 2_300)
      }, delay)
    }
    const { code, by } = await proc.ended
    if (code === 0) return { told: { outcome: 'ok' }, json: jsonOf(proc.out) }
    const error = (jsonOf(proc.err) as Json)?.error
    if (by !== null || !error) {
      if (by === null) scene.note('cli', `${args.join(' ')}: ${code} ${proc.err.slice(-300)}`)
      return { told: { outcome: 'unknown', code: error?.code ?? by ?? 'crash' }, json: undefined }
    }
    const outcome = error.code === 'unavailable' ? 'unknown' : 'refused'
    return { told: { outcome, code: error.code }, json: undefined }
  }

  private async hold(): Promise<void> {
    const lock = `lock${this.scene.random.below(4)}`
    const ttl_ms = 2_000
    const acquire = ['lock', 'acquire', lock, '--ttl', '2s']
    const wait_ms = this.scene.random.pick([0, 2_000])
    if (wait_ms > 0) acquire.push('--wait', `${wait_ms / 1000}s`)
    const { json } = await this.ask({ op: 'lock.acquire', locks: [lock], ttl_ms, wait_ms }, acquire)
    const fence = json?.fence as number | undefined
    if (fence === undefined) return
    const under = { locks: [lock], fence, ttl_ms }
    const flags = ['--fence', String(fence)]
    if (this.scene.random.chance(0.4)) {
      await this.ask({ op: 'lock.renew', ...under }, ['lock', 'renew', lock, ...flags])
    }
    await this.ask({ op: 'lock.release', ...under }, ['lock', 'release', lock, ...flags])
  }

  private async add(): Promise<void> {
    const mark = `task ${this.agent} ${this.asked}`
    await this.ask({ op: 'task.create', mark }, ['task', 'add', mark])
  }
}

/** `leasehold run` around a command that witnesses whom it sees beside it. */
export class Wrapper {
  proc: Proc | undefined
  private readonly env: Env
  private lives = 0

  constructor(
    private readonly scene: Scene,
    private readonly name: string,
    daemon: DaemonKeeper,
  ) {
    this.env = { ...scene.env, LEASEHOLD_DIR: daemon.state }
  }

  async keep(): Promise<void> {
    const { scene } = this
    while (!scene.isOver) {
      await scene.powered
      this.lives += 1
      const lock = `run${scene.random.below(2)}`
      const who = `${this.name}.${this.lives}`
      const seconds = String(scene.random.pick([0.05, 0.2, 1]))
      const child = scene.random.chance(0.2) ? 'child' : ''
      const command = ['/bin/sh', join(scene.out, 'witness.sh'), lock, who, seconds, child]
      const args = ['run', '--lock', lock, '--ttl', '2s', '--wait', '10s', '--', ...command]
      this.proc = scene.spawn(who, 'wrapper', [scene.bin, ...args], this.env)
      const { by } = await this.proc.ended
      scene.ended(this.proc, by)
      await after(scene.random.below(100))
    }
  }
}

/** An agent at the other end of `leasehold mcp`'s pipe. */
export class McpClient {
  proc: Proc | undefined
  private readonly env: Env
  private lives = 0
  private id = 0

  constructor(
    private readonly scene: Scene,
    private readonly agent: string,
    daemon: DaemonKeeper,
  ) {
    this.env = { ...scene.env, LEASEHOLD_DIR: daemon.state, LEASEHOLD_AGENT: agent }
  }

  async keep(): Promise<void> {
    while (!this.scene.isOver) {
      await this.scene.powered
      this.lives += 1
      const who = `${this.agent}.${this.lives}`
      const proc = this.scene.spawn(who, 'mcp', [this.scene.bin, 'mcp'], this.env)
      this.proc = proc
      const notes = new Notes(join(this.scene.calls, `${who}.calls`))
      const over = proc.ended.then(({ by }) => this.scene.ended(proc, by))
      await Promise.race([this.converse(proc, notes), over])
      proc.child.stdin!.end()
      if (!proc.isOver) setTimeout(() => signal(proc.pid, 'SIGKILL'), 3_000).unref()
      await over
      notes.close()
    }
  }

  private async converse(proc: Proc, notes: Notes): Promise<void> {
    const clientInfo = { name: 'rig', version: '1' }
    const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
    await this.send(proc, 'initialize', hello)
    proc.child.stdin!.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    for (let n = 0; !this.scene.isOver && !proc.isOver; n += 1) {
      const lock = `lock${this.scene.random.below(4)}`
      const ttl_ms = 1_500
      const base = { locks: [lock], ttl_ms, agent: this.agent, door: 'mcp', named: true }
      const request = `${proc.who}-${n}`
      const end = notes.ask({ op: 'lock.acquire', request, ...base })
      const given = { name: lock, ttl_seconds: 1.5, request_id: request }
      const got = await this.call(proc, 'acquire_lock', given)
      end({ ...got.told, ...(got.json?.fence !== undefined && { fences: [got.json.fence] }) })
      const fence = got.json?.fence as number | undefined
      await after(this.scene.random.below(200))
      if (fence === undefined) continue
      const again = `${request}r`
      const finish = notes.ask({ op: 'lock.release', request: again, fence, ...base })
      const asked = { name: lock, fence, request_id: again }
      finish((await this.call(proc, 'release_lock', asked)).told)
    }
  }

  private async call(proc: Proc, name: string, given: object): Promise<{ told: Told; json: Json }> {
    const answer = await this.send(proc, 'tools/call', { name, arguments: given })
    const json = answer?.result?.structuredContent
    if (!answer?.result) return { told: { outcome: 'unknown', code: 'protocol' }, json: undefined }
    if (!answer.result.isError) return { told: { outcome: 'ok' }, json }
    const code = json?.error?.code as string
    const outcome = code === 'unavailable' ? 'unknown' : 'refused'
    return { told: { outcome, code }, json: undefined }
  }

  /** Waits for the line that answers this; for ever, if none comes: the caller races its end. */
  private send(proc: Proc, method: string, params: object): Promise<Json> {
    const id = (this.id += 1)
    proc.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return new Promise((resolve) => {
      const look = () => {
        for (const line of proc.out.split('\n')) {
          const said = line.includes(`"id":${id}`) ? (jsonOf(line) as Json) : undefined
          if (said?.id !== id) continue
          proc.child.stdout!.off('data', look)
          proc.out = ''
          return resolve(said)
        }
      }
      proc.child.stdout!.on('data', look)
    })
  }
}
