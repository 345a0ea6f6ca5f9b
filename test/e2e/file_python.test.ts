import { factsOf } from '../../src/core/event.ts'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { FileBackend } from '../../src/stores/file/backend.ts'
import { checkFileStore } from '../../src/stores/file/check.ts'
import { machine } from '../../src/machine/machine.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, expectRefusal, temporaryFolder, Verbs } from '../support/helpers.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const PYTHON = ['python3', here('python_participant.py')]
const NODE = [process.execPath, '--import', 'tsx', here('file_participant.ts')]

function start([program, ...first]: string[], args: string[], env = {}): ChildProcess {
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  return spawn(program!, [...first, ...args], {
    stdio: [...stdio],
    env: { ...process.env, ...env },
  })
}

/** The lines of JSON that a process says, one by one. */
async function* said(child: ChildProcess): AsyncGenerator<Record<string, unknown>> {
  for await (const line of createInterface({ input: child.stdout! })) yield JSON.parse(line)
}

async function allSaid(child: ChildProcess): Promise<Record<string, unknown>[]> {
  const ended = once(child, 'close')
  const lines: Record<string, unknown>[] = []
  for await (const line of said(child)) lines.push(line)
  const [code] = await ended
  expect(code, `${child.spawnargs.join(' ')} failed`).toBe(0)
  return lines
}

function open(dir: string): Verbs {
  return new Verbs(new Store(new FileBackend({ dir, busy_timeout_ms: 5_000 }), machine))
}

const me = callerOf('observer')

describe('several languages, one store', () => {
  test('Python and Node take turns at the same locks, and never hold one together', async () => {
    const dir = join(temporaryFolder(), 'store')
    const witness = join(temporaryFolder(), 'witness')
    mkdirSync(witness)
    const names = ['git', 'deploy']
    const cycles = 30
    const participants = [
      start(PYTHON, ['contend', dir, 'python-1', `${cycles}`, witness, ...names]),
      start(PYTHON, ['contend', dir, 'python-2', `${cycles}`, witness, ...names]),
      start(NODE, ['contend', dir, 'node-1', `${cycles}`, witness, ...names]),
      start(NODE, ['contend', dir, 'node-2', `${cycles}`, witness, ...names], { LOCK: 'no' }),
    ]
    const grants = (await Promise.all(participants.map(allSaid))).flat()

    expect(grants).toHaveLength(participants.length * cycles)
    expect(new Set(grants.map(({ fence }) => fence)).size).toBe(grants.length)
    const { ok, problems, head } = await checkFileStore(dir)
    expect({ ok, problems }).toEqual({ ok: true, problems: [] })
    expect(head.fences).toBe(grants.length)
    const byPython = execFileSync(PYTHON[0]!, [PYTHON[1]!, 'check', dir], { encoding: 'utf8' })
    expect(JSON.parse(byPython)).toMatchObject({ position: head.position })

    const events = await open(dir).store.events(0, 1_000)
    for (const name of names) {
      const turns = events.filter((event) => event.lock === name)
      const seen = turns.map((event) => `${event.type} ${factsOf(event).fence}`)
      const granted = turns.filter(({ type }) => type === 'lease.granted')
      const inTurn = granted.flatMap((event) => [
        `lease.granted ${factsOf(event).fence}`,
        `lease.released ${factsOf(event).fence}`,
      ])
      expect(seen).toEqual(inTurn)
    }
  })

  test('a lease that Python took expires on the clock they share, not before', async () => {
    const dir = temporaryFolder()
    const verbs = open(dir)
    await verbs.take('other', me)
    const python = start(PYTHON, ['acquire', dir, 'python', 'slow', '1000'])
    const [lease] = (await allSaid(python)) as unknown as { expires_ms: number; fence: number }[]
    await expectRefusal(verbs.take('slow', me), 'held')
    const tryTake = () => verbs.take('slow', me).catch(() => undefined)
    await expect.poll(tryTake, { interval: 20 }).toBeDefined()
    const taken = await verbs.lease('slow')
    expect(taken!.acquired_ms).toBeGreaterThanOrEqual(lease!.expires_ms)
    expect(taken!.acquired_ms - lease!.expires_ms).toBeLessThan(1_000)
    expect(taken!.fence).toBeGreaterThan(lease!.fence)
    expect(await verbs.eventTypes()).toContain('lease.expired')
  })
})

async function untilStopped(pid: number): Promise<void> {
  const state = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]![0]
  await expect.poll(state, { interval: 5 }).toBe('T')
}

describe('real processes, stopped and killed', () => {
  for (const step of ['link', 'read_back']) {
    test(`a process stopped before ${step} wakes up long after, and nothing is lost`, async () => {
      const dir = temporaryFolder()
      const verbs = open(dir)
      await verbs.take('first', me)
      const sleeper = start(NODE, ['stop', dir, 'sleeper', 'wanted', step])
      const lines = said(sleeper)
      expect((await lines.next()).value).toEqual({ stops: step })
      await untilStopped(sleeper.pid!)
      for (let i = 0; i < 40; i += 1) await verbs.take(`lock-${i}`, me)
      expect(existsSync(join(dir, 'state.2.json'))).toBe(false)
      sleeper.kill('SIGCONT')

      const answer = (await lines.next()).value
      expect(answer).toMatchObject({ name: 'wanted', holder: 'sleeper' })
      expect((await verbs.lease('wanted'))!.fence).toBe(answer!['fence'])
      for (let i = 0; i < 40; i += 1) expect(await verbs.lease(`lock-${i}`)).toBeDefined()
      const types = await verbs.eventTypes()
      expect(types.filter((type) => type === 'lease.granted')).toHaveLength(42)
      expect((await checkFileStore(dir)).problems).toEqual([])
    })
  }

  test('what was acknowledged before kill -9 is there, and the next writer cleans up', async () => {
    const dir = temporaryFolder()
    const verbs = open(dir)
    const acknowledged: string[] = []
    for (const agent of ['one', 'two', 'three']) {
      const child = start(NODE, ['stream', dir, agent])
      const before = acknowledged.length
      for await (const { name } of said(child)) {
        acknowledged.push(name as string)
        if (acknowledged.length === before + 12) child.kill('SIGKILL')
      }
    }
    for (const name of acknowledged) expect(await verbs.lease(name)).toMatchObject({ name })
    expect((await checkFileStore(dir)).problems).toEqual([])
    await verbs.take('after', me)
    const others = readdirSync(dir).filter((name) => !name.startsWith('state.'))
    expect(others).toEqual(['witness.state'])
  })

  test('a full disk is a typed refusal; nothing half-written is ever visible', async () => {
    const dir = temporaryFolder()
    const verbs = open(dir)
    await verbs.add('x'.repeat(20_000), me, { id: 'big' })
    // Every write of this process beyond 8 KiB fails, as on a full disk.
    const limited = ['bash', '-c', `trap '' XFSZ; ulimit -f 8; exec "$@"`, 'limited', ...NODE]
    const [answer] = await allSaid(start(limited, ['add', dir, 'squeezed', 'too much']))
    expect(answer).toMatchObject({ error: { code: 'unavailable' } })
    expect((answer!['error'] as { message: string }).message).toMatch(/disk is full/)
    expect(readdirSync(dir)).toEqual(['state.1.json', 'witness.state'])
    expect((await verbs.add('fits', me)).title).toBe('fits')
  })
})
