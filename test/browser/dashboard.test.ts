import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startDaemon } from '../doors/serving.ts'
import { until } from '../support/processes.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, linkFrom, openWindow, signIn, visit } from './signed_in.ts'

const on = shareDashboard((place) => {
  const go = place.path('go')
  const agent = `echo begun; while [ ! -e "${go}" ]; do sleep 0.05; done; echo went on; sleep 60`
  return {
    agents: { patient: { command: ['/bin/sh', '-c', agent] } },
    runs: { grace_seconds: 0 },
  }
})

describe('signing in', () => {
  test('a link works once, and leaves no trace in the address', async () => {
    const link = await linkFrom(on.place)
    const { page, context } = await openWindow(on)
    await page.goto(link)
    await page.getByRole('heading', { name: 'Now', exact: true }).waitFor()
    expect(page.url()).toBe(`${on.daemon.url}/#/now`)
    const [cookie] = await context.cookies(`${on.daemon.url}/v1/session`)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/v1' })
    const again = await openWindow(on, {}, /401/)
    await again.page.goto(link)
    await again.page.getByText('This link or token does not count').waitFor()
    await again.page.getByText('leasehold up --link', { exact: true }).first().waitFor()
  })

  test('a token can be pasted, and signing out ends what a link began', async () => {
    const { page } = await openWindow(on, {}, /401/)
    await page.goto(on.daemon.url)
    await page.getByLabel('Or paste a token').fill('nonsense')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Or paste a token').fill(await on.daemon.token('viewer'))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Now', exact: true }).waitFor()
    const linked = await signIn(on)
    const cookies = await linked.context.cookies(`${on.daemon.url}/v1/session`)
    await linked.page.getByRole('button', { name: 'Sign out' }).click()
    await linked.page.getByLabel('Or paste a token').waitFor()
    const reply = await on.daemon.post('lock.list', {}, { token: cookies[0]!.value })
    expect(reply.status).toBe(401)
    const revoked = await signIn(on, { expected: /401/ })
    const { items } = await on.daemon.ok('token.list', { limit: 1000 })
    await on.daemon.ok('token.revoke', { id: items.at(-1).id })
    // Nothing is asked for meanwhile: its stream was ended.
    await expectSeen(revoked.page.getByLabel('Or paste a token'))
    await expectSeen(revoked.page.getByText('unknown, expired or revoked'))
    expect(await revoked.page.title()).toBe('Sign in · Leasehold')
  })
})

test('what another process does is seen at once', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks')
  await on.place.ok(['lock', 'acquire', 'git:elsewhere', '--agent', 'terminal'])
  await expectSeen(page.getByRole('link', { name: 'git:elsewhere' }))
  await on.place.ok(['lock', 'release', 'git:elsewhere', '--agent', 'terminal'])
  await page.getByRole('link', { name: 'git:elsewhere' }).waitFor({ state: 'detached' })
  await visit(page, '#/work?as=board')
  await page.getByText('Here from the start').waitFor()
  await on.place.ok(['task', 'add', 'Come by another door', '--id', 'other'])
  await page.getByText('Come by another door').waitFor()
  await on.place.ok(['task', 'claim', 'other', '--agent', 'terminal'])
  const column = page.getByRole('region', { name: 'In progress' })
  await expectSeen(column.getByText('Come by another door'))
})

test('an admin can force-release, is told what will happen, and is named in the log', async () => {
  await on.daemon.ok('lock.acquire', { name: 'stuck', agent: 'sleepy' })
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks')
  await page.getByRole('button', { name: 'Force-release stuck' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('sleepy loses its lease at once').waitFor()
  await dialog.getByLabel('Reason').fill('it sleeps')
  await dialog.getByRole('button', { name: 'Force-release' }).click()
  await page.getByText('stuck was released').waitFor()
  const { is_locked } = await on.daemon.ok('lock.status', { name: 'stuck' })
  const { items } = await on.daemon.ok('event.list', { lock: 'stuck', limit: 1 })
  expect({ is_locked, event: items[0] }).toMatchObject({
    is_locked: false,
    event: {
      type: 'lease.force_released',
      agent: expect.stringMatching(/^web:/),
      data: { holder: 'sleepy', reason: 'it sleeps' },
    },
  })
})

test('a conflict of notes is shown side by side, and resolved with a text of both', async () => {
  await on.daemon.ok('memory.put', { key: 'port', content: 'It is 80.', agent: 'ada' })
  await on.daemon.ok('memory.put', { key: 'port', content: 'It is 8080.', agent: 'bob' })
  const { page } = await signIn(on)
  await visit(page, '#/knowledge?tab=conflicts')
  const sides = page.getByRole('region', { name: 'port' })
  await sides.getByText('It is 80.', { exact: true }).waitFor()
  await sides.getByText('It is 8080.', { exact: true }).waitFor()
  const save = page.getByRole('button', { name: 'Resolve with this text' })
  // The draft has both sides between its marks: nobody means those.
  await expectSeen(page.getByText('write what should stay there'))
  expect(await save.isDisabled()).toBe(true)
  await page.getByLabel('Or write what should stand').fill('It is 80 behind the proxy, else 8080.')
  await save.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('port is resolved').waitFor()
  await page.getByText('No notes disagree').waitFor()
  const note = await on.daemon.ok('memory.get', { key: 'port' })
  expect(note).toMatchObject({ content: 'It is 80 behind the proxy, else 8080.', siblings: [] })
})

test('the log of a run is followed, and the run can be cancelled', async () => {
  await on.daemon.ok('queue.add', {
    id: 'long',
    prompt: 'Take your time',
    project: 'web',
    user: 'u',
  })
  const { page } = await signIn(on)
  await visit(page, '#/work?id=long')
  const log = page.getByLabel('Output of run long.1')
  await expectSeen(log.getByText('begun'))
  writeFileSync(on.place.path('go'), '')
  await expectSeen(log.getByText('went on'))
  await page.getByRole('button', { name: 'Cancel task' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel task' }).click()
  await page.getByText('Task long was cancelled').waitFor()
  await until('it is cancelled', async () => {
    return (await on.daemon.ok('task.get', { id: 'long' })).status === 'cancelled'
  })
})

test('an admin weighs users and limits projects, and sees who got what', async () => {
  await on.daemon.ok('queue.pause')
  for (const user of ['ada', 'bob']) {
    await on.daemon.ok('queue.add', { prompt: 'Wait', project: 'api', user })
  }
  const { page } = await signIn(on, { expected: /400/ })
  const fill = async (label: string, text: string, verb: string) => {
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(label, { exact: true }).fill(text)
    await dialog.getByRole('button', { name: verb }).click()
  }
  await visit(page, '#/settings')
  await page.getByRole('button', { name: 'Weight of ada' }).click()
  await fill('Weight', '3', 'Set weight')
  await expectSeen(page.getByText('weight 3 · 0 running · 1 waiting'))
  await expectSeen(page.getByRole('img', { name: /^ada got .*, fair \d+ %$/ }))
  await page.getByRole('button', { name: 'Limit of project web' }).click()
  await fill('At most', 'many', 'Set limit')
  await page.getByText('many is not a number').waitFor()
  await fill('At most', '2', 'Set limit')
  await page.getByText('At most 2 at once for project web').waitFor()
  await page.getByRole('button', { name: 'Limit a group' }).click()
  await page.getByRole('dialog').getByLabel('Group').fill('migration')
  await fill('At most', '1', 'Set limit')
  await expectSeen(page.getByText('group migration'))
  const { shares, limits } = await on.daemon.ok('queue.status')
  expect(shares).toContainEqual(expect.objectContaining({ user: 'ada', weight: 3, pending: 1 }))
  const free = { used: 0, paused: false }
  expect(limits).toEqual([
    { project: null, group: 'migration', max: 1, ...free },
    { project: 'web', group: null, max: 2, ...free },
  ])
  await on.daemon.ok('queue.resume')
})

test('a search finds what the page has not loaded', async () => {
  await on.daemon.ok('task.create', { title: 'A needle', id: 'far-away' })
  const { page } = await signIn(on)
  await page.route('**/v1/task.peek', async (route) => {
    const asked = route.request().postDataJSON() as { text?: string; ids?: string[] }
    // What would load all tasks never ends.
    if (asked.text === undefined && asked.ids === undefined) return
    await route.continue()
  })
  await visit(page, '#/work')
  await page.getByText('so far, loading').waitFor()
  expect(await page.getByText('A needle').count()).toBe(0)
  await page.getByLabel('Search tasks').fill('NEEDLE')
  await expectSeen(page.getByText('A needle'))
})

test('an edit on an old version says so, and loses neither side', async () => {
  await on.daemon.ok('task.create', { id: 'shared', title: 'Before', agent: 'ada' })
  const { page } = await signIn(on, { expected: /409/ })
  await visit(page, '#/work?id=shared')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').getByLabel('Body').fill('From the page')
  await on.daemon.ok('task.update', { id: 'shared', version: 1, title: 'After', agent: 'ada' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Somebody changed this task while you were editing').waitFor()
  // What they changed is shown, and only what was changed here is put on top of it.
  await page.getByText('Title: After').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Task shared is now version 3').waitFor()
  const task = await on.daemon.ok('task.get', { id: 'shared' })
  expect(task).toMatchObject({ title: 'After', body: 'From the page', version: 3 })
})

test('a viewer sees everything and can change nothing', async () => {
  await on.daemon.ok('lock.acquire', { name: 'kept', agent: 'ada' })
  const { page } = await signIn(on, { flags: ['--viewer'], expected: /403/ })
  await visit(page, '#/who?tab=locks')
  await page.getByRole('link', { name: 'kept' }).waitFor()
  expect(await page.getByRole('button', { name: /release/i }).count()).toBe(0)
  await visit(page, '#/work?id=first')
  await page.getByRole('region', { name: 'Story' }).waitFor()
  expect(await page.getByRole('button', { name: 'Edit' }).count()).toBe(0)
  expect(await page.getByRole('button', { name: /cancel|retry/i }).count()).toBe(0)
  await visit(page, '#/now')
  await expectSeen(page.getByText('Slots', { exact: true }))
  expect(await page.getByRole('button', { name: /pause|stop/i }).count()).toBe(0)
  await visit(page, '#/settings')
  await page.getByRole('heading', { name: 'Queue by user' }).waitFor()
  expect(await page.getByRole('button', { name: /pause|limit/i }).count()).toBe(0)
  const status = await page.evaluate(`fetch('/v1/lock.force_release', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"kept"}',
  }).then((response) => response.status)`)
  expect(status).toBe(403)
  expect((await on.daemon.ok('lock.status', { name: 'kept' })).is_locked).toBe(true)
})

test('what could not be asked for is asked for again', async () => {
  const { page } = await signIn(on, { expected: /ERR_|Failed to load/ })
  await visit(page, '#/who?tab=locks')
  await page.route('**/v1/lock.peek*', (route) => route.abort(), { times: 1 })
  await on.place.ok(['lock', 'acquire', 'git:unheard', '--agent', 'terminal'])
  await expectSeen(page.getByRole('link', { name: 'git:unheard' }))
})

test('it says that the server is away, comes back by itself, and misses nothing', async () => {
  const { page } = await signIn(on, { expected: /ERR_|Failed to load/ })
  await visit(page, '#/who?tab=locks')
  const { port } = on.daemon
  await on.daemon.kill()
  await expectSeen(page.getByText('The server does not answer'))
  // Nobody serves now: this goes to the store itself.
  await on.place.ok(['lock', 'acquire', 'git:meanwhile', '--agent', 'terminal'])
  on.daemon = await startDaemon(on.place, { flags: ['--port', String(port)] })
  await expectSeen(page.getByText('Connected again'))
  await expectSeen(page.getByRole('link', { name: 'git:meanwhile' }))
  await on.place.ok(['lock', 'acquire', 'git:afterwards', '--agent', 'terminal'])
  await page.getByRole('link', { name: 'git:afterwards' }).waitFor()
})
