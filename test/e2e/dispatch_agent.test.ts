import { describe, expect, test } from 'vitest'
import { dispatching, type Dispatching, HELD, script } from '../support/dispatching.ts'
import { overHttp } from '../doors/mcp_agent.ts'
import { send } from '../doors/serving.ts'
import { until } from '../support/processes.ts'

/** Calls an operation as the agent of a run does, with what its environment gives it. */
const CALLER = `
const { LEASEHOLD_URL: url, LEASEHOLD_TOKEN: token, LEASEHOLD_TASK: id, OUT } = process.env
const fence = Number(process.env.LEASEHOLD_FENCE)
const fs = require('node:fs')
const ask = async (name, input) => {
  const reply = await fetch(url + '/v1/' + name, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  return { status: reply.status, body: await reply.json() }
}
const note = (name, value) => {
  fs.writeFileSync(OUT + '/.' + name, JSON.stringify(value))
  fs.renameSync(OUT + '/.' + name, OUT + '/' + name)
}
`

const node = (body: string) => ({
  command: [process.execPath, '-e', `${CALLER}\n(async () => {${body}})()`],
})

async function noted(all: Dispatching, name: string) {
  return JSON.parse(await until(`${name} is noted`, () => all.read(name)))
}

async function lastRun(all: Dispatching, task_id: string) {
  const { items } = await all.daemon.ok('run.list', { task_id })
  return items.at(-1)
}

describe('an agent with the token of its run', () => {
  test('moves its own task, which then stays so; an admin’s rights it has not', async () => {
    const all = dispatching({
      agents: {
        mover: node(`
          const moved = await ask('task.status', { id, fence, status: 'review' })
          const admin = await ask('queue.pause', {})
          note('asked', { moved, admin, token })`),
      },
    })
    await all.serve()
    await all.add('ada-1', 'ada')
    const { moved, admin, token } = await noted(all, 'asked')
    expect([moved.status, moved.body.task.status]).toEqual([200, 'review'])
    expect(admin.status).toBe(403)
    await until('the run has ended', async () => (await lastRun(all, 'ada-1')).ended_at)
    expect(await all.task('ada-1')).toMatchObject({ status: 'review', lock_until: null })
    expect(await lastRun(all, 'ada-1')).toMatchObject({ status: 'completed', exit_code: 0 })
    const reply = await send(all.daemon.url, '/v1/task.get?id=ada-1', { token })
    expect(reply.status).toBe(401)
  })

  test('works as long as the run, also past a kill -9 of the daemon, and no longer', async () => {
    const all = dispatching({
      agents: { held: script(`echo $LEASEHOLD_TOKEN > "$OUT/t"; ${HELD}`) },
    })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.seen('start', 1)
    const token = all.read('t').trim()
    const asked = () => send(all.daemon.url, '/v1/task.get?id=ada-1', { token })
    expect(await asked()).toMatchObject({ status: 200 })
    const { port } = all.daemon
    await all.daemon.kill()
    await all.serve({}, undefined, ['--port', String(port)])
    expect(await asked()).toMatchObject({ status: 200 })
    all.write('go')
    await all.become('ada-1', 'done')
    expect(await asked()).toMatchObject({ status: 401 })
  })
})

describe('how a run ends', () => {
  test('over a limit of its agent, task or user: stopped, and the next starts', async () => {
    const agents = {
      deaf: script('trap "" TERM; begin; forever', { time_limit_seconds: 1 }),
      forever: script('begin; forever'),
      mute: script('begin; forever', { silence_seconds: 1 }),
    }
    const all = dispatching({
      agents,
      runs: { grace_seconds: 0.2 },
      per_user_serialization: { lock_timeout_seconds: 2 },
    })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.add('ada-2', 'ada')
    await all.add('ben-1', 'ben', { agent_command: 'forever', time_limit_seconds: 1 })
    await all.add('cem-1', 'cem', { agent_command: 'forever' })
    await all.add('dan-1', 'dan', { agent_command: 'mute' })
    for (const [id, outcome] of [
      ['ada-1', 'time limit of 1 s'],
      ['ben-1', 'time limit of 1 s'],
      ['cem-1', 'time limit of 2 s'],
      ['dan-1', 'silent for 1 s'],
      ['ada-2', 'time limit of 1 s'],
    ] as const) {
      await all.become(id, 'failed')
      expect(await lastRun(all, id)).toMatchObject({ status: 'failed', outcome })
    }
    expect(all.wrong()).toEqual([])
    expect(all.agents()).toEqual([])
  })

  test('fails twice, then succeeds: done with retries 2, failed with 1', async () => {
    const body = 'begin; n=$(grep -c "start $LEASEHOLD_TASK " "$OUT/log"); [ $n -gt 2 ] && finish'
    const all = dispatching({ agents: { third: script(body) } })
    await all.serve()
    await all.add('ada-1', 'ada', { retries: 2 })
    await all.add('ben-1', 'ben', { retries: 1 })
    await all.become('ada-1', 'done')
    await all.become('ben-1', 'failed')
    expect(await all.task('ada-1')).toMatchObject({ attempts: 3 })
    expect(await all.task('ben-1')).toMatchObject({ attempts: 2 })
    const { items } = await all.daemon.ok('run.list', { task_id: 'ada-1' })
    const ends = items.map((run: { id: string; status: string }) => [run.id, run.status])
    expect(ends).toEqual([
      ['ada-1.1', 'failed'],
      ['ada-1.2', 'failed'],
      ['ada-1.3', 'completed'],
    ])
    await all.place.ok(['queue', 'retry', 'ben-1'])
    await all.become('ben-1', 'done')
  })

  test('a command that does not exist fails the task, and says so', async () => {
    const all = dispatching({ agents: { none: { command: ['./no/such/program'] } } })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.become('ada-1', 'failed')
    const run = await lastRun(all, 'ada-1')
    expect(run.outcome).toBe('could not start: ./no/such/program was not found')
    // Written when the store has heard of it, and so a moment after it says so.
    await until('meta.json says so', () => all.meta(run.id)?.status === 'failed')
    expect(all.meta(run.id)).toMatchObject({ status: 'failed', started_at: null, pid: null })
  })
})

describe('runs', () => {
  test('list, show and logs tell what a run did; logs --follow ends with it', async () => {
    const body = 'begin; echo out; echo err >&2; until_there go; echo last; finish'
    const all = dispatching({ agents: { talker: script(body) } })
    await all.serve()
    await all.add('ada-1', 'ada')
    const { pid, fence } = (await all.seen('start', 1))[0]!
    const { items } = await all.place.ok(['runs', 'list'])
    expect(items).toHaveLength(1)
    const shown = await all.place.ok(['runs', 'show', 'ada-1.1'])
    expect(shown).toMatchObject({ id: 'ada-1.1', status: 'running', user: 'ada', pid, fence })
    expect(shown).toMatchObject({ lock_id: `task:ada-1#${fence}`, lock_released: false })
    const follow = all.place.start(['runs', 'logs', 'ada-1', '--follow'], { input: '' })
    await follow.said(/^err$/m)
    expect((await all.place.cli(['runs', 'logs', 'ada-1.1'])).out).toMatch(/out[^]*err/)
    all.write('go')
    expect(await follow.ended).toMatchObject({ code: 0, out: 'out\nerr\nlast\n', err: '' })
    await all.become('ada-1', 'done')
    const over = await all.place.ok(['runs', 'show', 'ada-1.1'])
    expect(over).toMatchObject({ status: 'completed', exit_code: 0, lock_released: true })
    const { status, ended_at, lock_released, exit_code } = over
    await until('meta.json has it', () => all.meta('ada-1.1')?.ended_at)
    expect(all.meta('ada-1.1')).toMatchObject({ status, ended_at, lock_released, exit_code })
    await all.place.refused(['runs', 'show', 'ada-1.2'], 'not_found', 3)
    await all.place.refused(['runs', 'logs', 'no-such'], 'not_found', 3)
  })

  test('logs --follow of a run that is cancelled ends, too', async () => {
    const all = dispatching({ agents: { held: script(`echo here; ${HELD}`) } })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.seen('start', 1)
    const follow = all.place.start(['runs', 'logs', 'ada-1.1', '-f'], { input: '' })
    await follow.said(/here/)
    await all.place.ok(['--force', 'queue', 'cancel', 'ada-1'])
    expect(await follow.ended).toMatchObject({ code: 0 })
  })
})

test('what an agent enqueues by MCP is run', async () => {
  const all = dispatching({ agents: { cat: script('begin; cat > "$OUT/prompt"; finish') } })
  await all.serve()
  const mcp = await overHttp(all.daemon.url, await all.daemon.agentToken('planner'))
  const asked = { project: 'web', user: 'ada', prompt: 'Mend the roof' }
  const { task, position } = await mcp.ok('enqueue_task', asked)
  expect(position).toBe(1)
  await until(
    'it is done',
    async () => (await mcp.ok('get_task', { task_id: task.id })).status === 'done',
  )
  expect(all.read('prompt')).toBe('Mend the roof')
  expect(await mcp.ok('queue_status')).toMatchObject({ pending: { total: 0 } })
})
