import { describe, expect, test } from 'vitest'
import { dispatching, type Dispatching, HELD, script } from '../support/dispatching.ts'
import { send } from '../doors/serving.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { BIN, until } from '../support/processes.ts'

const ENVIRON = `env > "$OUT/env.new"; mv "$OUT/env.new" "$OUT/env"; ${HELD}`

/** What the agent of the first run was given. */
async function environment(all: Dispatching): Promise<Record<string, string>> {
  const text = await until('the agent says what it has', () => all.read('env'))
  const entries = text.split('\n').map((line) => /^([^=]+)=(.*)$/.exec(line)?.slice(1) ?? [])
  return Object.fromEntries(entries) as Record<string, string>
}

const add = (all: Dispatching, env = {}) =>
  all.place.ok(['queue', 'add', 'do it', '--project', 'web', '--user', 'ada', '--id', 'T'], { env })

describe('agents under a dispatcher without a daemon', () => {
  test('get a door and a token, and with these no more than an agent may', async () => {
    const all = dispatching({ agents: { held: script(ENVIRON) } })
    await add(all)
    const dispatcher = await all.dispatch()
    const env = await environment(all)
    expect(Object.keys(env)).not.toContain('LEASEHOLD_STORE')
    expect(Object.keys(env)).not.toContain('LEASEHOLD_DIR')
    const { LEASEHOLD_URL: url = '', LEASEHOLD_TOKEN: token, LEASEHOLD_FENCE: fence } = env
    const ask = (name: string, input: object) =>
      send(url, `/v1/${name}`, {
        token,
        method: 'POST',
        body: JSON.stringify(input),
        headers: { 'content-type': 'application/json' },
      })
    expect((await ask('queue.pause', {})).status).toBe(403)
    expect((await ask('lock.force_release', { name: 'task:T' })).status).toBe(403)
    const moved = await ask('task.status', { id: 'T', status: 'review', fence: Number(fence) })
    expect(moved).toMatchObject({ status: 200, json: { task: { status: 'review' } } })
    all.write('go')
    await until('the run has ended', () => all.meta('T.1')?.ended_at)
    dispatcher.kill('SIGTERM')
    expect((await dispatcher.ended).code).toBe(0)
  })

  test('find it closed when that dispatcher dies, and open again with the next', async () => {
    const all = dispatching({ agents: { held: script(ENVIRON) } })
    await add(all)
    const dispatcher = await all.dispatch()
    const { LEASEHOLD_DIR: _, ...env } = { ...all.place.env, ...(await environment(all)) }
    const show = ['task', 'show', 'T']
    const agent = { env: { ...env, LEASEHOLD_DIR: undefined }, program: [process.execPath, BIN] }
    expect(await all.place.ok(show, agent)).toMatchObject({ status: 'in_progress' })
    dispatcher.kill('SIGKILL')
    await dispatcher.ended
    const gone = await all.place.refused(show, 'unavailable', 75, agent)
    expect(gone.next).toContain('Its dispatcher, started again, is at the same address.')
    const next = await all.dispatch()
    expect(await all.place.ok(show, agent)).toMatchObject({ status: 'in_progress' })
    all.write('go')
    await until('the run has ended', () => all.meta('T.1')?.ended_at)
    expect(await all.place.ok(show)).toMatchObject({ status: 'done' })
    next.kill('SIGTERM')
    await next.ended
  })

  test('are given nothing that opens the database, whatever is passed on', async () => {
    const url = new URL(postgresUrl(temporaryFolder()))
    url.password ||= 'geheim'
    const store = url.href
    const passed = { DATABASE_URL: true, PGPASSWORD: true, OTHER: true, MINE: true }
    const all = dispatching({
      agents: { held: script(ENVIRON, { env: { ...passed, WRITTEN: `${store}&x=1` } }) },
    })
    const env = {
      LEASEHOLD_STORE: store,
      DATABASE_URL: store,
      PGPASSWORD: decodeURIComponent(url.password),
      OTHER: `jdbc://${url.username}:${url.password}@elsewhere/db`,
      MINE: 'kept',
    }
    await add(all, env)
    const dispatcher = await all.dispatch([], env)
    const given = await environment(all)
    expect(given).toMatchObject({ MINE: 'kept', LEASEHOLD_URL: expect.stringContaining('http://') })
    for (const name of ['LEASEHOLD_STORE', 'DATABASE_URL', 'PGPASSWORD', 'OTHER', 'WRITTEN']) {
      expect(Object.keys(given)).not.toContain(name)
    }
    expect(Object.values(given).join('\n')).not.toContain(`:${url.password}@`)
    all.write('go')
    await until('the run has ended', () => all.meta('T.1')?.ended_at)
    dispatcher.kill('SIGTERM')
    await dispatcher.ended
  })
})
