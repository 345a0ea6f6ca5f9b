import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readMeta } from '../../src/daemon/runner/run_folder.ts'
import { runFolder } from '../../src/machine/run_output.ts'
import { daemonOn } from '../support/daemons.ts'
import { dispatching, HELD, script } from '../support/dispatching.ts'
import { sandbox, until } from '../support/processes.ts'
import { type Aim, needsAim, startAimed } from './aimed.ts'

/*
 * A program looks, is stopped there, and others change what it saw; then it goes on by what it has
 * seen. First uses of a store are in `first_use`, the secret of a server is in `daemon/start`.
 */

describe('what was found damaged, and was put right meanwhile', () => {
  const COMMANDS = [
    ['db', 'check'],
    ['task', 'add', 'More'],
  ]
  const CALLS: Aim['call'][] = ['access', 'openat', 'statx']

  for (const args of COMMANDS) {
    test(`stays right whatever ${args[0]} ${args[1]} has seen of it`, async (context) => {
      needsAim(context)
      let there = 0
      for (const call of CALLS) {
        const place = sandbox()
        const database = join(place.state, 'leasehold.db')
        await place.ok(['task', 'add', 'One', '--id', '1'])
        await place.ok(['db', 'backup', place.path('good.db')])
        writeFileSync(database, 'this is not a database, and never was\n'.repeat(99))
        const slow = startAimed(place, ['--json', ...args], { paths: [database], call })
        if (await slow.isThere()) {
          there += 1
          await place.ok(['db', 'restore', place.path('good.db'), '--yes'])
          await slow.goOn()
        }
        // What it says itself may be of before or after; it must not outlast that.
        expect([0, 76], call).toContain((await slow.running.ended).code)
        // Before a check, which would take a mark away.
        await place.ok(['task', 'add', 'Two'])
        expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
        expect(await place.ok(['task', 'show', '1'])).toMatchObject({ title: 'One' })
      }
      expect(there).toBeGreaterThan(0)
    })
  }
})

describe('a server that is gone by when it is asked', () => {
  test.for([
    ['another serves elsewhere', true],
    ['nobody serves', false],
  ] as const)('is not waited for: %s', async ([, isReplaced], context) => {
    needsAim(context)
    const place = sandbox()
    const first = await daemonOn(place)
    const aim: Aim = { paths: [join(place.state, 'server.json')], call: 'openat' }
    const slow = startAimed(place, ['--json', 'lock', 'acquire', 'a', '--agent', 'a'], aim)
    expect(await slow.isThere()).toBe(true)
    first.running.kill('SIGTERM')
    await first.running.ended
    if (isReplaced) await daemonOn(place)
    await slow.goOn()
    expect(await slow.running.ended).toMatchObject({ code: 0 })
    expect(await place.ok(['lock', 'status', 'a'])).toMatchObject({ is_locked: true })
  })
})

describe('a run that ends while a dispatcher that comes back looks at its folder', () => {
  test('is what the store says, in the folder too', async (context) => {
    needsAim(context)
    const all = dispatching()
    all.configure({ agents: { held: script(HELD) } })
    await all.serve()
    await all.add('t', 'ada')
    await until('it runs', () => all.lines('start').length === 1)
    const { run } = all.lines('start')[0]!
    await all.daemon.kill()
    const folder = runFolder(all.place.state, run)
    const aim: Aim = { paths: [join(folder, 'meta.json')], call: 'openat' }
    const slow = startAimed(all.place, ['--json', 'serve', '--port', '0'], aim)
    expect(await slow.isThere()).toBe(true)
    all.write('go')
    await until('its runner has said so', () => readMeta(folder)?.ended_at)
    await slow.goOn()
    await slow.running.said(/"url"/)
    const [status, meta] = [await all.place.ok(['runs', 'show', run]), readMeta(folder)]
    expect(status).toMatchObject({ status: 'completed', exit_code: 0 })
    expect(meta).toMatchObject({ status: 'completed', exit_code: 0, lock_released: true })
    slow.running.kill('SIGTERM')
    expect(await slow.running.ended).toMatchObject({ code: 0 })
  })
})
