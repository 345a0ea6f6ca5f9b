import { existsSync, mkdirSync, watch } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { grantTimeAfterAbsence } from '../../src/core/locks/restore.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { daemonOn } from '../support/daemons.ts'
import { sandbox, type Sandbox } from '../support/processes.ts'
import { type Aim, needsAim, startAimed } from '../faults/aimed.ts'

const SERVE = ['--json', 'serve', '--port', '0']

describe('a server that is ended as soon as it can be found', () => {
  test('ends in order, and leaves nothing that says it is there', async () => {
    const place = sandbox()
    mkdirSync(place.state, { mode: 0o700 })
    const watcher = watch(place.state)
    const announced = new Promise<void>((resolve) => {
      watcher.on('change', (_, name) => name === 'server.json' && resolve())
    })
    const server = place.start(SERVE, { input: '' })
    await announced
    server.kill('SIGTERM')
    watcher.close()
    expect(await server.ended).toMatchObject({ code: 0, signal: null })
    for (const left of ['server.json', 'admin.token']) {
      expect(existsSync(join(place.state, left)), left).toBe(false)
    }
  })
})

describe('a server that is replaced by another on its port', () => {
  test('gets the asks of those who had read the secret of the one before', async (context) => {
    needsAim(context)
    const place = sandbox()
    const first = await daemonOn(place)
    const aim: Aim = { paths: [join(place.state, 'admin.token')], call: 'openat' }
    const slow = startAimed(place, ['--json', 'lock', 'acquire', 'a', '--agent', 'a'], aim)
    expect(await slow.isThere()).toBe(true)
    first.running.kill('SIGKILL')
    await first.running.ended
    await daemonOn(place, first.port)
    await slow.goOn()
    expect(await slow.running.ended).toMatchObject({ code: 0, err: '' })
  })
})

/** A port that no server gets. */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => void server.once('listening', resolve))
  return (server.address() as { port: number }).port
}

describe('leases at the start of a server', () => {
  const expiryOf = async (place: Sandbox) => {
    const { lock_expires_at } = await place.ok(['lock', 'status', 'a'])
    return lock_expires_at as string
  }
  const extensions = async (place: Sandbox) => {
    const { store, close } = storeOf(place)
    const events = await store.events(0, 1_000)
    await close()
    return events.filter(({ type }) => type === 'lease.extended')
  }
  const storeOf = (place: Sandbox) => {
    const store = openStore(placeOf(place.env, place.folder))
    return { store, close: () => store.close() }
  }

  test('get a full TTL once, when it is back, and nothing from one that fails', async () => {
    const place = sandbox()
    const first = await daemonOn(place)
    await place.ok(['lock', 'acquire', 'a', '--agent', 'a', '--ttl', '10m'])
    const granted = await expiryOf(place)
    first.running.kill('SIGKILL')
    await first.running.ended
    const failing = ['--json', 'serve', '--port', String(await takenPort())]
    expect(await place.cli(failing)).not.toMatchObject({ code: 0 })
    expect(await expiryOf(place), 'a start that fails').toBe(granted)

    const second = await daemonOn(place)
    const back = await expiryOf(place)
    expect(back > granted, `${back} is later than ${granted}`).toBe(true)
    const [told, ...more] = await extensions(place)
    expect(told).toMatchObject({
      lock: 'a',
      agent: 'a',
      data: { ttl_seconds: 600, after: 'absence' },
    })
    expect(more).toEqual([])
    second.running.kill('SIGKILL')
    await second.running.ended
    await daemonOn(place)
    expect(await expiryOf(place), 'not renewed since').toBe(back)
    expect(await extensions(place)).toHaveLength(1)
  })

  test('of other hosts stay as they are', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'a', '--agent', 'a', '--ttl', '10m'])
    const { store, close } = storeOf(place)
    const back = (host: string) =>
      store.write((view) =>
        grantTimeAfterAbsence(view, { daemon: `leasehold:daemon:${host}`, host, isShared: true }),
      )
    const lease = () => store.read((view) => view.get('lease', 'a')!)
    await store.write((view) => {
      const [held, agent] = [view.get('lease', 'a')!, view.get('agent', 'a')!]
      view.put('lease', { ...held, ttl_ms: 599_000 })
      view.put('agent', { ...agent, host: 'one' })
      const seen = { ...agent, kind: 'daemon', last_seen_ms: held.acquired_ms - 1 }
      for (const host of ['one', 'two'])
        view.put('agent', { ...seen, id: `leasehold:daemon:${host}` })
    })
    const { expires_ms } = await lease()
    await back('two')
    expect((await lease()).expires_ms).toBe(expires_ms)
    await back('one')
    expect((await lease()).expires_ms).not.toBe(expires_ms)
    await close()
  })
})
