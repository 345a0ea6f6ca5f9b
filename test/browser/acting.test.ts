import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import { until } from '../support/processes.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, signIn, visit } from './signed_in.ts'

/** What a person does on the page is done in the store. */

const on = shareDashboard(() => ({ projects: {} }))

/** Says yes in the dialog that asks, and waits for what is said of it. */
async function confirm(page: Page, verb: string, said: RegExp | string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: verb }).click()
  await expectSeen(page.getByText(said))
}

const statusOf = async (id: string) => (await on.daemon.ok('task.get', { id })).status as string

test('a selection of tasks is cancelled, then retried, and what is refused is named', async () => {
  const ids = ['many-1', 'many-2', 'many-3']
  for (const id of ids) {
    await on.daemon.ok('queue.add', { id, prompt: id, project: 'bulk', user: 'ada' })
  }
  await on.daemon.ok('task.create', { id: 'many-over', title: 'Over', project: 'bulk' })
  await on.daemon.ok('task.claim', { id: 'many-over', agent: 'ada' })
  await on.daemon.ok('task.status', { id: 'many-over', status: 'done', agent: 'ada' })
  const { page } = await signIn(on, { expected: /409/ })
  await visit(page, '#/work?show=all&project=bulk')
  await page.getByRole('button', { name: 'Select all 4' }).click()
  await page.getByLabel('Select task many-3').uncheck()
  await expectSeen(page.getByText('3 selected'))
  await page.getByRole('button', { name: 'Cancel tasks' }).click()
  await confirm(page, 'Cancel tasks', /2 of 3 tasks; refused: many-over: /)
  expect(await Promise.all(ids.map(statusOf))).toEqual(['cancelled', 'cancelled', 'todo'])
  await expectSeen(page.getByRole('button', { name: 'Select all 4' }))
  await page.getByLabel('Select task many-1').check()
  await page.getByLabel('Select task many-2').check()
  await page.getByRole('button', { name: 'Retry' }).click()
  await confirm(page, 'Retry tasks', '2 of 2 tasks')
  expect(await Promise.all(ids.map(statusOf))).toEqual(['todo', 'todo', 'todo'])
})

test('a new task is enqueued for a dispatcher, or added for any agent', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/work')
  const add = async (text: string, target: RegExp) => {
    await page.getByRole('button', { name: 'New task' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('What to do').fill(text)
    const choice = await dialog.getByRole('option', { name: target }).textContent()
    await dialog.getByRole('combobox', { name: 'For' }).selectOption(choice)
    // Only those that are known: a slip of the pen makes no project.
    await dialog.getByRole('combobox', { name: 'Project' }).selectOption('bulk')
    await dialog.getByLabel('User').fill('eve')
    await dialog.getByLabel('Priority').fill('8')
    await dialog.getByRole('button', { name: 'Add task' }).click()
    await dialog.waitFor({ state: 'detached' })
    return until(`${text} is there`, async () => {
      const { items } = await on.daemon.ok('task.list', { project: 'bulk', limit: 100 })
      return items.find(({ title }: Json) => title === text.split('\n')[0])
    })
  }
  const queued = await add('Paint the door\n\nIn green.', /dispatcher/)
  const both = { project: 'bulk', user: 'eve', priority: 8, status: 'todo' }
  expect(await on.daemon.ok('task.get', { id: queued.id })).toMatchObject({
    ...both,
    body: expect.stringContaining('In green.'),
    queue: expect.anything(),
  })
  const free = await add('Oil the hinge', /any agent/)
  expect(await on.daemon.ok('task.get', { id: free.id })).toMatchObject({ ...both, queue: null })
})

test('a note is edited on the version that was read, and deleted', async () => {
  await on.daemon.ok('memory.put', { key: 'door', content: 'It is red.', agent: 'ada' })
  const { page } = await signIn(on, { expected: /404/ })
  await visit(page, '#/knowledge')
  await page.getByRole('link', { name: 'door', exact: true }).click()
  const note = page.getByRole('complementary', { name: 'Note door' })
  await note.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').getByLabel('What it says').fill('It is green.')
  await confirm(page, 'Save note', 'door was saved')
  await expectSeen(note.getByText('It is green.'))
  expect(await on.daemon.ok('memory.get', { key: 'door' })).toMatchObject({
    content: 'It is green.',
    siblings: [],
  })
  await note.getByRole('button', { name: 'Delete note' }).click()
  await confirm(page, 'Delete note', 'door was deleted')
  const { json } = await on.daemon.post('memory.get', { key: 'door' })
  expect(json.error.code).toBe('not_found')
})

test('the inbox is emptied: what failed alike is retried at once, the rest dismissed', async () => {
  const fail = async (id: string) => {
    await on.daemon.ok('task.claim', { id, agent: 'ada' })
    await on.daemon.ok('task.status', { id, status: 'failed', agent: 'ada' })
  }
  for (const id of ['sour-1', 'sour-2']) {
    await on.daemon.ok('task.create', { id, title: id })
    await fail(id)
  }
  const { page } = await signIn(on)
  const inbox = page.getByRole('region', { name: 'Inbox' })
  await expectSeen(page.getByRole('link', { name: '2 failed' }))
  await inbox.getByRole('button', { name: 'Retry all 2' }).click()
  await confirm(page, 'Retry all 2', '2 tasks wait to be run again')
  expect(await Promise.all(['sour-1', 'sour-2'].map(statusOf))).toEqual(['todo', 'todo'])
  await inbox.waitFor({ state: 'detached' })
  await fail('sour-1')
  await inbox.getByRole('button', { name: /^Dismiss/ }).click()
  await confirm(page, 'Dismiss', 'Dismissed')
  await inbox.waitFor({ state: 'detached' })
  expect(await page.getByText('1 failed').count()).toBe(0)
  await fail('sour-2')
  // That is news.
  await expectSeen(inbox.getByText('sour-2'))
})
