import type { Landing } from '../../src/core/schema/landing.ts'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { forceRelease } from '../../src/core/locks/lock.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { stateOf, until } from '../support/processes.ts'
import { ada, LandingScene, type Said } from './scene.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/test/lander_process.mjs', import.meta.url))
const admin = { ...callerOf('admin'), admin: true }

/** Numbers that are the same for the same seed. */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** Several landers, each a process of its own, over one repository and one store. */
export class Crew {
  readonly scene: LandingScene
  private readonly log: string
  private readonly crew = new Set<ChildProcess>()

  constructor(said: Said = {}, check_seconds = 0.02, more = '') {
    this.log = join(temporaryFolder(), 'checks')
    // What it was shown, and what it says of that: the judge compares it with what the target was.
    const shown = 'at=$(git rev-parse HEAD); sleep "$1"; '
    const verdict = `ls | grep -q ^red && what=red || what=green; echo "$at $what" >> "$2"; `
    const script = `${shown}${more}${verdict}test $what = green`
    const check = ['/bin/sh', '-c', script, 'check', String(check_seconds), this.log]
    this.scene = new LandingScene({ check, ...said })
    onTestFinished(async () => {
      for (const each of this.crew) await this.kill(each)
    })
  }

  async start(env: Record<string, string> = {}): Promise<ChildProcess> {
    const { top } = this.scene
    const child = spawn(process.execPath, [PROGRAM], {
      cwd: top,
      env: {
        PATH: process.env['PATH'],
        LEASEHOLD_DIR: join(top, '.leasehold'),
        LEASEHOLD_TRUST_CONFIG: 'yes',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.crew.add(child)
    await once(child.stdout, 'data')
    return child
  }

  async kill(child: ChildProcess): Promise<void> {
    this.crew.delete(child)
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async stopped(child: ChildProcess): Promise<void> {
    await until('it stops', () => stateOf(child.pid!) === 'T')
  }

  /** The lease of the lander is over, as its TTL would have it, though its process lives. */
  async expire(): Promise<number | undefined> {
    const { store } = this.scene
    return store.write((view) => {
      for (const { name, process } of view.scan('leases_by_expiry', '')) {
        if (!name.startsWith('leasehold:lander:')) continue
        forceRelease(view, { name }, admin)
        return process?.pid
      }
      return undefined
    })
  }

  /** Which process is the lander now. */
  lander(): Promise<number | undefined> {
    return this.scene.store.read((view) => {
      const leases = [...view.scan('leases_by_expiry', '')]
      return leases.find(({ name }) => name.startsWith('leasehold:lander:'))?.process?.pid
    })
  }

  /** Tasks in review, each with a branch: some in conflict with each other, some red. */
  async work(count: number): Promise<Landing[]> {
    const { scene } = this
    await scene.begin({ auto: false })
    const asked: Landing[] = []
    for (let i = 0; i < count; i += 1) {
      const id = `t${i}`
      scene.branch(id, filesOf(i))
      await scene.verbs.add(id, ada, { id, project: 'web' })
      const { lease } = await scene.verbs.claim(id, ada)
      asked.push(await scene.ask({ id, fence: lease.fence, branch: id }))
    }
    return asked
  }

  checks(): string[] {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8').trim().split('\n') : []
  }

  /** All landings, when all are over. */
  async over(asked: Landing[], timeout_ms: number): Promise<Landing[]> {
    const all = () => Promise.all(asked.map(({ id }) => this.scene.landing(id)))
    const isOver = async () => (await all()).every(({ ended_at }) => ended_at !== null)
    await until('all are over', isOver, timeout_ms)
    return all()
  }

  /** What has to be true whatever happened on the way. */
  async judge(landings: Landing[]): Promise<{ landed: number; red: number; conflict: number }> {
    const { repo, verbs } = this.scene
    const subjects = repo.git('log', '--reverse', '--format=%s', 'main').split('\n').slice(1)
    const landed = landings.filter(({ status }) => status === 'landed')
    // Nothing twice, nothing lost, nothing that came back, and all in order.
    expect(subjects).toEqual(landed.map(({ task_id }) => task_id))
    const green = new Set(this.checks().flatMap((line) => line.match(/^(\w+) green$/)?.[1] ?? []))
    const states = repo.git('reflog', '--format=%H', 'refs/heads/main').split('\n').slice(0, -1)
    for (const state of states) {
      expect(green.has(state), `${state} was checked`).toBe(true)
      expect(repo.git('ls-tree', '--name-only', state)).not.toMatch(/^red/m)
    }
    for (const [i, { task_id, status, reason }] of landings.entries()) {
      const { status: now } = await verbs.task(task_id!)
      expect(now).toBe(status === 'landed' ? 'done' : 'todo')
      if (isRed(i)) expect(reason).toContain('check failed')
      else if (status !== 'landed') expect(reason).toContain('shared.txt')
    }
    const editors = landings.filter((_, i) => isEditor(i))
    const conflict = editors.filter(({ status }) => status === 'returned').length
    expect(conflict).toBe(Math.max(0, editors.length - 1))
    const red = landings.filter((_, i) => isRed(i)).length
    expect(landed).toHaveLength(landings.length - red - conflict)
    expect(repo.git('status', '--porcelain')).toBe('')
    return { landed: landed.length, red, conflict }
  }
}

/** The first writes a line that a fifth of the others write too: those conflict. A tenth is red. */
const isEditor = (i: number) => i === 0 || i % 5 === 2
const isRed = (i: number) => i % 10 === 6

function filesOf(i: number): Record<string, string> {
  if (isEditor(i)) return { 'shared.txt': `${i}\n`, [`f${i}`]: '' }
  return isRed(i) ? { [`red${i}`]: '' } : { [`f${i}`]: `${i}` }
}
