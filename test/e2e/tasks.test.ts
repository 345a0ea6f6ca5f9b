import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import { type Sandbox, until } from '../support/processes.ts'

describe('task', () => {
  test('add answers with the whole task; show and list give it back', async () => {
    const place = sandbox()
    const flags = ['--id', 'web-1', '--body', '-', '--project', 'web', '--user', 'ada']
    const more = ['--priority', '7', '--group', 'g', '--label', 'rust', '--label', 'ui']
    const meta = ['--metadata', '{"ra_mode":"x"}', '--ra-score', '3', '--agent', 'me']
    const args = ['task', 'add', 'Fix it', ...flags, ...more, ...meta]
    const task = await place.ok(args, { input: 'All that is known\n' })
    expect(task).toMatchObject({
      id: 'web-1',
      title: 'Fix it',
      body: 'All that is known\n',
      project: 'web',
      user: 'ada',
      priority: 7,
      group: 'g',
      labels: ['rust', 'ui'],
      depends_on: [],
      assigned_to: null,
      metadata: { ra_mode: 'x', ra_score: 3 },
      status: 'todo',
      version: 1,
      assignee: null,
      assigned_at: null,
      lock_until: null,
      attempts: 0,
      created_by: 'me',
    })
    expect(await place.ok(['task', 'show', 'web-1'])).toEqual(task)
    expect(await place.ok(['task', 'list'])).toEqual({ items: [task], next: null })
    await place.refused(['task', 'add', 'Again', '--id', 'web-1'], 'conflict', 5)
    expect(await place.ok(['task', 'add', 'Plain'])).toMatchObject({ id: '1', priority: 5 })
  })

  test('list filters by status, readiness, project and label, page by page', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'a', '--id', 'a', '--project', 'web', '--label', 'ui'])
    await place.ok(['task', 'add', 'b', '--id', 'b', '--depends-on', 'a'])
    await place.ok(['task', 'add', 'c', '--id', 'c', '--priority', '9'])
    await place.ok(['task', 'claim', 'c', '--agent', 'me'])
    const ids = async (...flags: string[]) => {
      const { items } = await place.ok(['task', 'list', ...flags])
      return items.map(({ id }: { id: string }) => id)
    }
    expect(await ids()).toEqual(['a', 'b', 'c'])
    expect(await ids('--ready')).toEqual(['a'])
    expect(await ids('--status', 'In Progress')).toEqual(['c'])
    expect(await ids('--status', 'pending')).toEqual(['a', 'b'])
    expect(await ids('--project', 'web')).toEqual(['a'])
    expect(await ids('--label', 'ui')).toEqual(['a'])
    const first = await place.ok(['task', 'list', '--limit', '2'])
    expect(first.items).toHaveLength(2)
    expect(await ids('--limit', '2', '--after', first.next)).toEqual(['c'])
    await place.refused(['task', 'list', '--after', 'nonsense'], 'invalid', 2)
  })

  test('claim without an id takes the best ready task that fits, or nothing', async () => {
    const place = sandbox()
    await place.nothingReady()
    await place.nothingReady('--wait', '10ms')
    expect((await place.cli(['task', 'claim'])).out).toMatch(/^Nothing is ready/)
    await place.ok(['task', 'add', 'low', '--id', 'low', '--project', 'web'])
    await place.ok(['task', 'add', 'high', '--id', 'high', '--priority', '9'])
    await place.ok(['task', 'add', 'yours', '--id', 'yours', '--assigned-to', 'you'])
    const claim = await place.ok(['task', 'claim', '--agent', 'a'])
    expect(claim).toMatchObject({
      task: { id: 'high', status: 'in_progress', assignee: 'a', attempts: 1 },
      lease: { name: 'task:high', holder: 'a' },
      run: { id: 'high.1', agent: 'a', status: 'running' },
    })
    const web = await place.ok(['task', 'claim', '--project', 'web', '--agent', 'a'])
    expect(web.task.id).toBe('low')
    await place.nothingReady('--agent', 'a')
    await place.refused(['task', 'claim', 'yours', '--agent', 'a'], 'forbidden', 4)
    expect((await place.ok(['task', 'claim', '--agent', 'you'])).task.id).toBe('yours')
  })

  test('dependencies hold a task back until they are done', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'first', '--id', '1'])
    await place.ok(['task', 'add', 'then', '--id', '2', '--depends-on', '1'])
    const { message } = await place.refused(['task', 'claim', '2'], 'illegal_move', 5)
    expect(message).toContain('waits for 1')
    const why = await place.ok(['task', 'explain', '2'])
    expect(why.sentence).toBe('Task 2 waits for task 1, which is todo.')
    expect(why.reasons).toMatchObject([{ code: 'dependency', details: { task_id: '1' } }])
    await place.ok(['task', 'claim', '1', '--agent', 'a'])
    await place.ok(['task', 'done', '1', '--agent', 'a'])
    expect((await place.ok(['task', 'explain', '2'])).reasons[0].code).toBe('ready')
    await place.ok(['task', 'claim', '2'])
    await place.refused(['task', 'add', 'x', '--depends-on', 'nope'], 'not_found', 3)
  })

  test('an edit states the version it read; a stale one gets the present task', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'Old', '--id', '1'])
    const edit = ['task', 'edit', '1', '--version', '1', '--title']
    expect(await place.ok([...edit, 'New'])).toMatchObject({ title: 'New', version: 2 })
    const error = await place.refused([...edit, 'Lost'], 'conflict', 5)
    expect(error.message).toBe('task was modified by another agent (version mismatch)')
    expect(error.details.task).toMatchObject({ title: 'New', version: 2 })
    await place.refused(['task', 'edit', '1', '--title', 'x'], 'invalid', 2)
  })

  test('cancel is for holder, creator and admin; done is read-only but for admins', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'Mine', '--id', '1', '--agent', 'maker'])
    await place.ok(['task', 'claim', '1', '--agent', 'a'])
    await place.refused(['task', 'cancel', '1', '--agent', 'b'], 'held', 5)
    const cancelled = await place.ok(['task', 'cancel', '1', '--agent', 'maker'])
    expect(cancelled).toMatchObject({ task: { status: 'cancelled' }, lease: null })
    await place.refused(['task', 'status', '1', 'done', '--agent', 'a'], 'illegal_move', 5)
    await place.ok(['task', 'status', '1', 'todo'])
    await place.ok(['task', 'claim', '1', '--agent', 'a'])
    await place.ok(['task', 'cancel', '1', '--agent', 'b', '--force'])
    await place.ok(['task', 'status', '1', 'todo'])
    await place.ok(['task', 'claim', '1', '--agent', 'a'])
    await place.ok(['task', 'done', '1', '--agent', 'a'])
    await place.refused(['task', 'status', '1', 'todo'], 'illegal_move', 5)
    const reopened = await place.ok(['task', 'status', '1', 'todo', '--force'])
    expect(reopened.task.status).toBe('todo')
  })

  test('a person reads a sheet and a table; text cannot move the cursor', async () => {
    const place = sandbox()
    const added = await place.cli([
      'task',
      'add',
      'Émoji 🦊 title',
      '--id',
      '1',
      '--body',
      'Why\nso',
    ])
    expect(added.out).toBe('added task 1: Émoji 🦊 title\n')
    const { out } = await place.cli(['task', 'show', '1'])
    expect(out).toMatch(/^1 {2}Émoji 🦊 title\n {2}status +todo\n/)
    expect(out).toMatch(/\n\n {2}Why\n {2}so\n$/)
    const list = await place.cli(['task', 'list'])
    expect(list.out).toMatch(/^ID +STATUS +P +PROJECT +ASSIGNEE +TITLE\n1 +todo +5 +Émoji/)
    await place.cli(['task', 'add', 'x', '--id', '2', '--body', '\u001b[2Jgone\u0007'])
    const sheet = await place.cli(['task', 'show', '2'])
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    expect(sheet.out).not.toMatch(/[\u0007\u001b]/)
  })
})

describe('agent', () => {
  test('appears at first use, and a heartbeat renews all it holds', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x', 'y', '--agent', 'bot:1', '--ttl', '5m'])
    const [agent] = (await place.ok(['agent', 'list'])).items
    expect(agent).toMatchObject({ id: 'bot:1', kind: 'bot', holds: ['x', 'y'] })
    const { items } = await place.ok(['agent', 'heartbeat', '--agent', 'bot:1'])
    expect(items.map(({ name }: { name: string }) => name)).toEqual(['x', 'y'])
    const beat = await place.cli(['agent', 'heartbeat', '--agent', 'bot:1'])
    expect(beat.out).toBe('renewed x\nrenewed y\n')
    expect((await place.cli(['agent', 'list'])).out).toMatch(
      /^AGENT +KIND .*\nbot:1 +bot .* x y\n$/,
    )
  })
})

describe('db and doctor', () => {
  const STORES = { sqlite: {}, file: { LEASEHOLD_STORE: 'file:files' } }

  for (const [kind, env] of Object.entries(STORES)) {
    test(`${kind}: migrate makes it, check finds it sound, a backup brings it back`, async () => {
      const place = on(env)
      expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, events: 0 })
      await place.refused(['db', 'backup'], 'not_found', 3)
      expect(await place.ok(['db', 'migrate'])).toMatchObject({ migrated: true })
      await place.ok(['task', 'add', 'Kept', '--id', 'kept'])
      const { backup, ok } = await place.ok(['db', 'backup', place.path('copy')])
      expect({ backup, ok }).toEqual({ backup: place.path('copy'), ok: true })
      expect(existsSync(backup)).toBe(true)
      const again = await place.cli(['--json', 'db', 'backup', place.path('copy')])
      expect(again.code, 'a backup never overwrites a file').not.toBe(0)
      await place.ok(['task', 'add', 'Later', '--id', 'later'])
      const restored = await place.ok(['db', 'restore', place.path('copy'), '--yes'])
      expect(restored).toMatchObject({ ok: true, problems: [], epoch: 1 })
      await place.ok(['task', 'show', 'kept'])
      await place.refused(['task', 'show', 'later'], 'not_found', 3)
      await place.refused(['db', 'restore', place.path('nowhere')], 'not_found', 3)
      await place.refused(['db', 'restore'], 'invalid', 2)
      const named = await place.ok(['db', 'backup'])
      expect(named.ok).toBe(true)
      expect(readdirSync(place.path('state/backups'))).toHaveLength(1)
    })

    test(`${kind}: doctor looks at everything, and says so to people and programs`, async () => {
      const place = on(env)
      await place.ok(['task', 'add', 'x'])
      const { ok, findings } = await place.ok(['doctor'])
      const whats = findings.map(({ what }: { what: string }) => what)
      expect({ ok, whats }).toEqual({
        ok: true,
        whats: [
          'node',
          'agent',
          'folder',
          'disk',
          'git',
          'config',
          'programs',
          'hooks',
          'store',
          'server',
          'memory',
          'alerts',
          'writing',
        ],
      })
      const human = await place.cli(['doctor'])
      expect(human.out).toMatch(/^ok +node +v\d+/)
    })
  }

  function on(env: Record<string, string>): Sandbox {
    const place = sandbox()
    Object.assign(place.env, env)
    return place
  }
})

describe('a lease that has run out', () => {
  test('is free for others without anybody clearing it away, and reads say so', async () => {
    const place = sandbox()
    const { fence } = await place.ok(['lock', 'acquire', 'x', '--agent', 'a', '--ttl', '1s'])
    await until('it runs out', async () => {
      return !(await place.ok(['lock', 'status', 'x'])).is_locked
    })
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
    const renew = ['lock', 'renew', 'x', '--agent', 'a', '--fence', `${fence}`]
    await place.refused(renew, 'lease_expired', 5)
    const next = await place.ok(['lock', 'acquire', 'x', '--agent', 'b'])
    expect(next.fence).toBeGreaterThan(fence)
    await place.refused(renew, 'fence_stale', 5)
  })
})
