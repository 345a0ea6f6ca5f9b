import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { GroupRef } from '../../src/core/rows.ts'
import { groupFact, newMark, noteStarted, stopGroup } from '../../src/machine/group.ts'
import { processRef } from '../../src/machine/process.ts'
import { isAlive, sandbox, type Sandbox, until } from '../support/processes.ts'
import { DEAF, FOREVER } from './runner_agent.ts'

/** A script in a group of its own, marked or not, as a runner would start it. */
class Tree {
  readonly place: Sandbox
  readonly child: ChildProcess
  readonly ref: GroupRef

  constructor(body: string, more: Partial<GroupRef> = { mark: newMark() }) {
    this.place = sandbox()
    const { PATH, LEASEHOLD_TEST } = this.place.env
    const mark = more.mark === undefined ? {} : { LEASEHOLD_MARK: more.mark }
    this.child = spawn('/bin/sh', ['-c', body], {
      cwd: this.place.folder,
      detached: true,
      env: { PATH, LEASEHOLD_TEST, ...mark },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    this.ref = { ...processRef(this.child.pid!)!, ...more }
    onTestFinished(() => {
      for (const pid of this.place.left()) tryKill(pid)
    })
  }

  async pidIn(name: string): Promise<number> {
    const path = this.place.path(name)
    return until(name, () => existsSync(path) && Number(readFileSync(path, 'utf8').trim()))
  }

  /** The leader, which may wait for the end of its input, is gone and reaped. */
  async ended(): Promise<void> {
    this.child.stdin!.end()
    if (this.child.exitCode === null && this.child.signalCode === null) {
      await once(this.child, 'exit')
    }
  }
}

function tryKill(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself just now.
  }
}

/**
 * What is left of a group, for who asks until he is told. A look at a process that is just becoming
 * another program says nothing, and tests beside this one start programs all the time.
 */
const factOf = (ref: GroupRef) =>
  until('a look says something', () => {
    const fact = groupFact(ref)
    return fact !== 'unknown' && fact
  })

describe('what is left of a group', () => {
  test('who left the group is found by its mark, and only by the whole of it', async () => {
    const mark = newMark()
    const tree = new Tree(`${DEAF}\nexit 0`, { mark })
    await tree.ended()
    expect(await factOf(tree.ref)).toBe('alive')
    const near = mark.slice(0, -1) + (mark.endsWith('0') ? '1' : '0')
    for (const other of [near, mark.slice(0, -1), `${mark}x`, 'x']) {
      expect(await factOf({ ...tree.ref, mark: other }), other).toBe('dead')
    }
    const { mark: _, ...unmarked } = tree.ref
    expect(await factOf(unmarked)).toBe('dead')
    expect(await stopGroup(unmarked)).toBe(true)
    expect(isAlive(await tree.pidIn('deaf'))).toBe(true)
    expect(await stopGroup(tree.ref, 100)).toBe(true)
    expect(isAlive(await tree.pidIn('deaf'))).toBe(false)
    expect(await factOf(tree.ref)).toBe('dead')
  })

  test('a mark in an argument, or in the value of another variable, is none', async () => {
    const mark = newMark()
    const name = `LEASEHOLD_MARK=${mark}`
    const tree = new Tree(`X_${name} OTHER="${name}" sh -c '${FOREVER}' "${name}" & ${FOREVER}`, {})
    expect(await factOf({ ...tree.ref, pid: 2 ** 22 - 7, mark })).toBe('dead')
    noteStarted(tree.ref)
    expect(await stopGroup(tree.ref)).toBe(true)
  })

  test('what was there before the group cannot be of it', async () => {
    const tree = new Tree(FOREVER)
    const later = { ...tree.ref, pid: 2 ** 22 - 7, start: tree.ref.start + 1_000_000 }
    expect(await factOf(later)).toBe('dead')
    expect(await stopGroup(later)).toBe(true)
    expect(isAlive(tree.ref.pid)).toBe(true)
  })

  test('zombies are not left', async () => {
    const tree = new Tree(`setsid sh -c 'echo $$ > self; exit 0' & sleep 0.05; exec sleep 600`)
    await tree.pidIn('self')
    await until('the straggler has ended', async () => !isAlive(await tree.pidIn('self')))
    expect(await stopGroup(tree.ref)).toBe(true)
  })
})

describe('stopping a group', () => {
  test('TERM reaches those that went astray too, and what hears it may clean up', async () => {
    const body = `setsid sh -c 'trap "echo bye > bye; exit" TERM; echo $$ > self; ${FOREVER}' &
      ${FOREVER}`
    const tree = new Tree(body, { mark: newMark(), grace_ms: 10_000 })
    await tree.pidIn('self')
    const begun = performance.now()
    expect(await stopGroup(tree.ref)).toBe(true)
    expect(performance.now() - begun).toBeLessThan(5_000)
    expect(readFileSync(tree.place.path('bye'), 'utf8')).toBe('bye\n')
  })

  test('each is told once to end: a second TERM would cut its cleaning short', async () => {
    const body = `trap 'echo TERM >> heard' TERM; echo $$ > self; ${FOREVER}`
    const tree = new Tree(body, { mark: newMark(), grace_ms: 300 })
    await tree.pidIn('self')
    expect(await stopGroup(tree.ref)).toBe(true)
    expect(readFileSync(tree.place.path('heard'), 'utf8')).toBe('TERM\n')
  })

  test('the grace is that of the group unless another is given', async () => {
    const tree = new Tree(`trap "" TERM; echo $$ > self; ${FOREVER}`, {
      mark: newMark(),
      grace_ms: 600_000,
    })
    await tree.pidIn('self')
    expect(await stopGroup(tree.ref, 50)).toBe(true)
    const short = new Tree(`trap "" TERM; echo $$ > self; ${FOREVER}`, {
      mark: newMark(),
      grace_ms: 200,
    })
    await short.pidIn('self')
    const begun = performance.now()
    expect(await stopGroup(short.ref)).toBe(true)
    expect(performance.now() - begun).toBeGreaterThan(190)
  })

  test('a stopped process hears TERM', async () => {
    const tree = new Tree(`trap 'echo bye > bye; exit' TERM; echo $$ > self; ${FOREVER}`)
    const pid = await tree.pidIn('self')
    process.kill(-pid, 'SIGSTOP')
    expect(await stopGroup(tree.ref, 10_000)).toBe(true)
    expect(readFileSync(tree.place.path('bye'), 'utf8')).toBe('bye\n')
  })

  test('children that are forked all the time, each in a session of its own, all go', async () => {
    const child = 'trap "" TERM; exec sleep 30'
    const breed = `trap "" TERM; n=0; while [ $n -lt 40 ]; do n=$((n + 1))
      setsid sh -c "$CHILD" & sleep 0.01; done; exec sleep 30`
    const tree = new Tree(`export CHILD='${child}'; setsid sh -c '${breed}' & read -r end; exit 0`)
    await tree.ended()
    await until('there are some', () => tree.place.left().length > 10)
    expect(await stopGroup(tree.ref, 50)).toBe(true)
    expect(tree.place.left()).toEqual([])
  })

  test('a group whose number was given to another is left alone', async () => {
    const tree = new Tree(`echo $$ > self; ${FOREVER}`, {})
    await tree.pidIn('self')
    expect(await stopGroup({ ...tree.ref, start: tree.ref.start - 1 })).toBe(true)
    expect(isAlive(tree.ref.pid)).toBe(true)
  })

  test('a group of another seat cannot be stopped from here', async () => {
    const tree = new Tree(`echo $$ > self; ${FOREVER}`)
    await tree.pidIn('self')
    const far = { ...tree.ref, seat: 'far/pid:[1]' }
    expect(groupFact(far)).toBe('unknown')
    expect(await stopGroup(far)).toBe(false)
    expect(isAlive(tree.ref.pid)).toBe(true)
  })
})
