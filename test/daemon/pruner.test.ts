import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../src/core/retention.ts'
import { readConfig } from '../../src/daemon/config/config.ts'
import { startPruner } from '../../src/daemon/pruner.ts'
import { makeRunFolder, type RunMeta, writeMeta } from '../../src/daemon/runner/run_folder.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { runFolder } from '../../src/machine/run_output.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { heldRows } from '../stores/retention_scene.ts'

const ada = callerOf('ada')

/** A state folder with this configuration, and a store in it on a machine of its own time. */
function begin(retention: unknown) {
  const folder = join(temporaryFolder(), '.leasehold')
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ retention }))
  const place = placeOf({ LEASEHOLD_DIR: folder }, folder)
  const machine = new MachineSim()
  const store = openStore(place, machine)
  return { folder, place, machine, store, verbs: new Verbs(store) }
}

test('a daemon takes away what is over, as configured, and the folders of old runs', async () => {
  const { place, folder, machine, store, verbs } = begin({
    leases: { days: 2, max: null },
    output: { days: 3 },
  })
  await verbs.take('old', ada)
  await verbs.release('old', ada)
  const made = async (id: string) => {
    await verbs.add('work', ada, { id })
    const { run } = await verbs.claim(id, ada)
    await verbs.move(id, 'done', ada)
    const path = runFolder(folder, run.id)
    makeRunFolder(path)
    const ended_at = new Date(machine.wallMs()).toISOString()
    writeMeta(path, { id: run.id, task_id: id, ended_at } as RunMeta)
    return path
  }
  const paths = [await made('a')]
  machine.advance(4 * DAY_MS)
  paths.push(await made('b'))
  await verbs.take('young', ada)
  await verbs.release('young', ada)
  const stop = startPruner(store, place, 0)
  await until('the old folder is gone', () => !existsSync(paths[0]!))
  await stop()
  expect(existsSync(paths[1]!)).toBe(true)
  expect(await heldRows(store, 'lease', ['old', 'young', 'task:a'])).toEqual([false, true, false])
  // The run itself stays longer than what it wrote.
  expect(await heldRows(store, 'run', ['a.1', 'b.1'])).toEqual([true, true])
  await store.close()
})

test('config.json says what leaves, and what it may not say is refused', async () => {
  const { folder, store } = begin({ tasks: { days: 365 }, leases: { max: 5 } })
  expect(store.retention.tasks).toEqual({ days: 365, max: null })
  expect(readConfig(folder, {}).retention).toEqual(store.retention)
  for (const [wrong, problem] of [
    [{ leases: { days: '7' } }, /^retention\.leases\.days must be/],
    [{ leases: { days: -1 } }, /^retention\.leases\.days must be/],
    [{ lease: { days: 1 } }, /^retention\.lease: no such key; .*leases/],
    [{ leases: 7 }, /^retention\.leases must be an object/],
  ] as const) {
    const asked = Promise.resolve().then(() => readConfig(begin(wrong).folder, {}))
    const { details } = await expectRefusal(asked, 'invalid')
    expect(details['problems']).toEqual([expect.stringMatching(problem)])
  }
})
