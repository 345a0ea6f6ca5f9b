import { describe, expect, onTestFinished, test } from 'vitest'
import { bodyOf } from '../../src/core/tasks/body.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { daemonOn } from '../support/daemons.ts'
import { sandbox } from '../support/inside.ts'
import type { Sandbox } from '../support/processes.ts'

const MB = 1024 * 1024
const ALICE = ['--project', 'web', '--user', 'alice']

const add = (place: Sandbox, prompt: string, ...flags: string[]) =>
  place.ok(['queue', 'add', prompt, ...ALICE, ...flags])

/** What a person sees, and that it is an answer. */
async function seen(place: Sandbox, args: string[]): Promise<string> {
  const ended = await place.cli(args)
  expect(ended, args.join(' ')).toMatchObject({ code: 0, err: '' })
  return ended.out.trimEnd()
}

describe('queue add', () => {
  test('answers with the task and its place, and the task is shown everywhere', async () => {
    const place = sandbox()
    const flags = ['--id', 'web-1', '--title', 'Fix', '--priority', '8', '--group', 'g']
    const more = ['--label', 'a', '--label', 'b', '--metadata', '{"k":1}', '--retries', '2']
    const how = ['--agent-command', 'codex', '--time-limit', '90m']
    const { task, position } = await add(place, 'Fix it', ...flags, ...more, ...how)
    expect(position).toBe(1)
    expect(task).toMatchObject({
      ...{ id: 'web-1', title: 'Fix', body: 'Fix it', project: 'web', user: 'alice', priority: 8 },
      ...{ group: 'g', labels: ['a', 'b'], metadata: { k: 1 }, status: 'todo' },
      queue: { agent_command: 'codex', time_limit_seconds: 5400, retries: 2, failed: 0, lost: 0 },
    })
    expect(await place.ok(['task', 'show', 'web-1'])).toEqual(task)
    expect((await place.ok(['task', 'list'])).items).toEqual([task])
    const { body: _, ...listed } = task
    expect(await place.ok(['queue', 'list'])).toEqual({ items: [listed], next: null })
    expect((await place.ok(['task', 'list', '--ready'])).items).toEqual([])
    const sheet = await seen(place, ['task', 'show', 'web-1'])
    expect(sheet).toMatch(/enqueued +for codex\n +time limit +1h 30m\n +retries +2\n/)
    expect(await seen(place, ['queue', 'add', 'Next\nthing', ...ALICE])).toBe(
      'enqueued task 1 (Next), number 2 in the queue of alice\n' +
        'warning Task 1 waits for a dispatcher, and none is running',
    )
  })

  test('takes a prompt from standard input, behind --, and in any script', async () => {
    const place = sandbox()
    const prompt = 'Line one\n\n"quoted" $HOME `x` \u001b[31m größer 錠 🦊\n'
    const piped = await place.ok(['queue', 'add', '-', ...ALICE], { input: prompt })
    expect(piped.task).toMatchObject({ title: 'Line one', body: prompt })
    const dashed = await place.ok(['queue', 'add', ...ALICE, '--', '--help me'])
    expect(dashed.task).toMatchObject({ title: '--help me', body: '--help me' })
    const user = 'zoë 錠/🦊'
    const flags = ['--project', 'größer', '--user', user]
    const { task } = await place.ok(['queue', 'add', 'x', ...flags])
    expect(task).toMatchObject({ user, project: 'größer' })
    const { items } = await place.ok(['queue', 'list', '--user', user])
    expect(items).toHaveLength(1)
    expect((await place.ok(['queue', 'status'])).pending.by_user).toEqual({ alice: 2, [user]: 1 })
  })

  test.each(['on the store', 'through the daemon'])('takes 2 MB and no more, %s', async (way) => {
    const place = sandbox()
    if (way === 'through the daemon') await daemonOn(place)
    const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
    onTestFinished(() => store.close())
    for (const each of ['x', '\u0007', '錠']) {
      const prompt = `title${each.repeat(2 * MB - 5)}`
      const { task } = await place.ok(['queue', 'add', '-', ...ALICE], { input: prompt })
      const kept = await store.read((view) => bodyOf(view, view.get('task', task.id as string)!))
      expect(kept === prompt, JSON.stringify(each)).toBe(true)
      const args = ['queue', 'add', '-', ...ALICE]
      const no = await place.refused(args, 'too_large', 2, { input: `${prompt}y` })
      expect(no.message).toBe('prompt may have at most 2097152 characters')
    }
    const { pending } = await place.ok(['queue', 'status'])
    expect(pending.total).toBe(3)
    expect((await place.ok(['queue', 'list'])).items).toHaveLength(3)
  })

  test('says what is wrong with what it was given, and where to look', async () => {
    const place = sandbox()
    const refused = async (args: string[], input = '') => {
      const ended = await place.cli(['queue', 'add', ...args], { input })
      expect({ code: ended.code, out: ended.out }, args.join(' ')).toEqual({ code: 2, out: '' })
      return ended.err
    }
    const help = '\n  next: See: leasehold queue add --help\n'
    expect(await refused(['x'])).toBe(`error: project is missing; user is missing${help}`)
    expect(await refused(['x', '--project', 'web'])).toBe(`error: user is missing${help}`)
    expect(await refused(['', ...ALICE])).toBe(`error: prompt must not be empty${help}`)
    expect(await refused(['-', ...ALICE])).toMatch(/^error: Standard input is empty/)
    expect(await refused(['-', ...ALICE], 'a\0b')).toContain('must not contain NUL')
    const user = ['--project', 'web', '--user']
    expect(await refused(['x', ...user, ''])).toContain('user must not be empty')
    expect(await refused(['x', ...user, 'a\nb'])).toContain('user must not contain control')
    const titled = ['x', ...ALICE, '--title', 'a\u001b[31m']
    expect(await refused(titled)).toContain('title must not contain control')
    expect(await refused(['x', ...ALICE, '--priority', '10'])).toContain('at most 9')
    expect(await refused(['x', ...ALICE, '--time-limit', 'soon'])).toContain('not a duration')
    expect(await refused(['x', ...ALICE, '--retries', 'many'])).toContain('not a number')
    expect(await refused(['x', ...ALICE, '--colour', 'red'])).toContain('--colour')
    expect(await refused(ALICE)).toContain("missing required argument 'prompt'")
    await place.refused(['queue', 'add', 'x', ...ALICE, '--depends-on', '9'], 'not_found', 3)
    await add(place, 'x', '--id', 'T')
    await place.refused(['queue', 'add', 'x', ...ALICE, '--id', 'T'], 'conflict', 5)
    expect((await place.ok(['queue', 'list'])).items).toHaveLength(1)
  })

  test('does it once per request id', async () => {
    const place = sandbox()
    const first = await add(place, 'Once', '--request-id', 'r')
    expect(await add(place, 'Once', '--request-id', 'r')).toEqual(first)
    await place.refused(['queue', 'add', 'Else', ...ALICE, '--request-id', 'r'], 'invalid', 2)
    expect((await place.ok(['queue', 'list'])).items).toHaveLength(1)
  })
})

describe('an enqueued task', () => {
  test('is for a dispatcher, unless an agent says that it takes it', async () => {
    const place = sandbox()
    await add(place, 'First', '--id', 'a')
    await add(place, 'Second', '--id', 'b')
    const claim = (...args: string[]) => ['task', 'claim', ...args, '--agent', 'me']
    await place.nothingReady('--agent', 'me')
    const no = await place.refused(claim('a'), 'forbidden', 4)
    expect(no.next).toContain('task claim a --queued')
    await place.refused(['task', 'status', 'a', 'in_progress'], 'forbidden', 4)
    const { task, run, lease } = await place.ok(claim('--queued', '--project', 'web'))
    expect([task.id, run.id, lease.holder]).toEqual(['a', 'a.1', 'me'])
    const busy = await place.refused(claim('b', '--queued'), 'held', 5)
    expect(busy.message).toContain('user alice is busy with task a')
    await place.nothingReady('--queued', '--agent', 'me')
    await place.refused(claim('--queued', '--label', 'x'), 'invalid', 2)
    await place.ok(['task', 'done', 'a', '--agent', 'me'])
    expect(await place.ok(claim('--queued'))).toMatchObject({ task: { id: 'b' } })
    expect(await place.ok(['runs', 'list', '--task', 'a'])).toMatchObject({
      items: [{ id: 'a.1', status: 'completed', user: 'alice', lock_released: true }],
    })
    const sheet = await seen(place, ['runs', 'show', 'a.1'])
    expect(sheet).toMatch(/^a\.1 {2}First\n +status +completed\n/)
    expect(sheet).not.toContain('runs logs')
    await place.refused(['runs', 'logs', 'a.1'], 'not_found', 3)
    await place.refused(['runs', 'show', 'x.1'], 'not_found', 3)
    expect(await seen(place, ['runs', 'list'])).toContain('No dispatcher has started anything')
  })

  test('says why it waits', async () => {
    const place = sandbox()
    await add(place, 'First', '--id', 'a')
    await add(place, 'Second', '--id', 'b')
    const codes = async (id: string) => {
      const { reasons } = await place.ok(['task', 'explain', id])
      return reasons.map(({ code }: { code: string }) => code)
    }
    expect(await codes('a')).toEqual(['no_dispatcher'])
    expect(await codes('b')).toEqual(['order', 'no_dispatcher'])
    await place.ok(['queue', 'pause'])
    await place.ok(['queue', 'pause', '--project', 'web', '--user', 'alice'])
    expect(await codes('a')).toEqual(['paused', 'paused', 'paused', 'no_dispatcher'])
    await place.ok(['queue', 'resume'])
    await place.ok(['queue', 'resume', '--project', 'web', '--user', 'alice'])
    await place.ok(['queue', 'limit', '--max', '0'])
    expect(await codes('a')).toEqual(['pool_limit', 'no_dispatcher'])
    await place.ok(['queue', 'limit', '--max', 'null'])
    await place.ok(['task', 'claim', 'a', '--queued', '--agent', 'me'])
    expect(await codes('a')).toEqual(['running'])
    expect(await seen(place, ['task', 'explain', 'b'])).toContain('user alice is busy with task a')
  })

  test('is cancelled and tried again by those who may', async () => {
    const place = sandbox()
    await add(place, 'First', '--id', 'a', '--agent', 'ada')
    await place.refused(['queue', 'retry', 'a'], 'illegal_move', 5)
    expect(await place.ok(['queue', 'cancel', 'a'])).toMatchObject({ status: 'cancelled' })
    expect(await place.ok(['queue', 'cancel', 'a'])).toMatchObject({ status: 'cancelled' })
    expect((await place.ok(['queue', 'list'])).items).toEqual([])
    const again = await place.ok(['queue', 'retry', 'a'])
    expect(again).toMatchObject({ task: { id: 'a', status: 'todo' }, position: 1 })
    await place.ok(['task', 'claim', 'a', '--queued', '--agent', 'me'])
    await place.refused(['queue', 'cancel', 'a', '--agent', 'eve'], 'forbidden', 4)
    const cancel = ['queue', 'cancel', 'a', '--agent', 'eve', '--force']
    expect(await seen(place, cancel)).toBe('cancelled task a: First')
    await place.refused(['task', 'done', 'a', '--agent', 'me'], 'illegal_move', 5)
    for (const verb of ['cancel', 'retry']) {
      await place.refused(['queue', verb, 'none'], 'not_found', 3)
    }
    await place.ok(['task', 'add', 'Plain', '--id', 'plain'])
    await place.ok(['queue', 'cancel', 'plain'])
    const no = await place.refused(['queue', 'retry', 'plain'], 'illegal_move', 5)
    expect(no.message).toContain('never enqueued')
  })
})

describe('the queue', () => {
  test('shows what waits and who is busy, to a person and to a program', async () => {
    const place = sandbox()
    const empty = await seen(place, ['queue', 'status'])
    expect(empty).toMatch(/^queue\n +waiting +0\n +running +nothing\n +slots +no dispatcher runs/)
    await add(place, 'First', '--id', 'a')
    await add(place, 'Second', '--id', 'b', '--priority', '9')
    await place.ok(['task', 'claim', 'a', '--queued', '--agent', 'me', '--pid', `${process.pid}`])
    await place.ok(['queue', 'pause', '--project', 'api'])
    const sheet = await seen(place, ['queue', 'status'])
    expect(sheet).toContain('waiting   1, 1 of high priority\n  by user   alice 1\n')
    expect(sheet).toContain('running   web 1\n  paused    project api\n')
    expect(sheet).toMatch(new RegExp(`alice +a +${process.pid} +\\d+s$`))
    const status = await place.ok(['queue', 'status'])
    const [lock] = status.user_locks.details
    expect(lock).toMatchObject({ user: 'alice', task_id: 'a', acquired_by_pid: process.pid })
    expect(await place.ok(['lock', 'status', 'user:alice'])).toMatchObject({
      is_locked: true,
      lock_holder: 'me',
      lock_id: lock.lock_id,
      task_id: 'a',
      acquired_at: lock.acquired_at,
      lock_expires_at: lock.expires_at,
      pid: process.pid,
    })
    expect(await seen(place, ['lock', 'status', 'user:alice'])).toMatch(
      new RegExp(`^user:alice is held by me \\(PID: ${process.pid}\\) for task a\n`),
    )
    expect(await seen(place, ['lock', 'list'])).toMatch(/^task:a +me .*\nuser:alice +me /m)
    const list = await seen(place, ['queue', 'list'])
    expect(list).toMatch(/^ID +USER +PROJECT +P +GROUP +WAITS +TITLE\nb +alice +web +9 .* Second$/)
    expect(await seen(place, ['queue', 'list', '--user', 'bob'])).toMatch(/^Nothing waits/)
  })

  test('is listed page by page, by user and project', async () => {
    const place = sandbox()
    for (const id of ['a', 'b', 'c']) await add(place, id, '--id', id)
    await place.ok(['queue', 'add', 'd', '--id', 'd', '--project', 'api', '--user', 'bob'])
    const ids = async (...flags: string[]) => {
      const { items, next } = await place.ok(['queue', 'list', ...flags])
      return { ids: items.map(({ id }: { id: string }) => id).join(''), next }
    }
    expect(await ids()).toEqual({ ids: 'abcd', next: null })
    expect(await ids('--project', 'api')).toEqual({ ids: 'd', next: null })
    const page = await ids('--user', 'alice', '--limit', '2')
    expect(page.ids).toBe('ab')
    const rest = await ids('--user', 'alice', '--limit', '2', '--after', page.next)
    expect(rest).toEqual({ ids: 'c', next: null })
    await place.refused(['queue', 'list', '--after', 'nonsense'], 'invalid', 2)
  })

  test('takes limits and weights, one at a time, and lets go of them', async () => {
    const place = sandbox()
    const limit = (...flags: string[]) => ['queue', 'limit', ...flags]
    expect(await seen(place, limit('--project', 'web', '--max', '2'))).toBe(
      'set project web: at most 2 at once (0 now), until a config.json that names it is read again',
    )
    const none = await place.ok(limit('--project', 'web', '--max', 'null'))
    expect(none).toMatchObject({ project: 'web', max: null, used: 0 })
    expect(await seen(place, limit('--user', 'alice', '--weight', '2.5'))).toContain('weight 2.5')
    for (const flags of [
      [],
      ['--weight', '2'],
      ['--project', 'web', '--user', 'a', '--max', '1'],
    ]) {
      await place.refused(limit(...flags), 'invalid', 2)
    }
    for (const bad of ['many', '1.5', '-1', '', '{}']) {
      await place.refused(limit(`--max=${bad}`), 'invalid', 2)
    }
    const no = await place.cli(limit('--max', 'many'))
    expect(no.err).toBe(
      'error: --max is not a number: many\n  next: Give a number: --max 5, or null\n',
    )
  })

  test('lets an admin free a user, and settles what is stale', async () => {
    const place = sandbox()
    await add(place, 'First', '--id', 'a')
    await place.ok(['task', 'claim', 'a', '--queued', '--agent', 'me'])
    await place.refused(['queue', 'release-user', 'alice', '--task', 'b'], 'not_found', 3)
    expect(await seen(place, ['queue', 'release-user', 'alice'])).toBe(
      'released user alice: cancelled task a',
    )
    await place.refused(['queue', 'release-user', 'alice'], 'not_found', 3)
    expect(await seen(place, ['queue', 'cleanup'])).toBe('Nothing is stale.')
    await place.ok(['queue', 'retry', 'a'])
    await place.ok(['task', 'claim', 'a', '--queued', '--agent', 'me'])
    expect(await place.ok(['queue', 'cleanup', '--older-than', '1h'])).toMatchObject({ items: [] })
    const other = ['queue', 'cleanup', '--older-than', '0', '--project', 'api']
    expect(await place.ok(other)).toMatchObject({ items: [] })
    const { items } = await place.ok(['queue', 'cleanup', '--older-than', '0'])
    expect(items).toMatchObject([{ id: 'a.2' }])
    expect(await place.ok(['task', 'show', 'a'])).toMatchObject({ status: 'todo' })
  })
})

test('the help of every command of the queue and of runs teaches by more than flags', async () => {
  const place = sandbox()
  const verbs = ['add', 'status', 'list', 'cancel', 'retry', 'pause', 'resume', 'limit', 'cleanup']
  const commands = [...verbs, 'release-user'].map((verb) => ['queue', verb])
  for (const command of [...commands, ['runs', 'list'], ['runs', 'show']]) {
    const help = await seen(place, [...command, '--help'])
    const [, taught = ''] = help.split('owns the store\n')
    expect(taught.trim().length, command.join(' ')).toBeGreaterThan(60)
    for (const line of help.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  }
  const flags = await seen(place, ['queue', 'add', '--help'])
  expect(flags).toMatch(/--project <name> .*\(required\)\.\n/)
})
