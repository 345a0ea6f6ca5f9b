import { isDeepStrictEqual } from 'node:util'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import type { GitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { playLine, playShop, shopConfig, shopRepo } from './branch_scene.ts'
import { Asking } from './scene.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, signIn, visit } from './signed_in.ts'

let repo: GitRepo
let asking: Asking

const on = shareDashboard((place) => shopConfig((repo = shopRepo(place.path('shop')))))

beforeAll(async () => {
  asking = new Asking(on.daemon.url, on.daemon.secret)
  await playShop(asking)
})

/** What the page lists, by id: its state, and the reason if there is one. */
function listed(page: Page): Promise<Record<string, string>> {
  return page.evaluate(`Object.fromEntries(
    [...document.querySelectorAll('main .list .row:has([data-id])')].map((row) => [
      row.querySelector('[data-id]').dataset.id,
      [...row.querySelectorAll('.badge, .why')]
        .map((each) => each.innerText.trim())
        .join(': '),
    ]))`)
}

const NAMES: Record<string, string> = {
  waiting: 'Waiting',
  landing: 'Landing',
  landed: 'Landed',
  returned: 'Came back',
  cancelled: 'Cancelled',
}

async function landings(): Promise<Record<string, string>> {
  const { items } = await on.daemon.ok('land.list')
  const said = ({ id, status, reason }: Json) => [
    id,
    [NAMES[status], reason ?? []].flat().join(': '),
  ]
  return Object.fromEntries(items.map(said))
}

async function worktrees(): Promise<Record<string, string>> {
  const { items } = await on.daemon.ok('worktree.list')
  const said = ({ id, state, kept_because: why }: Json) => {
    const name = `${state[0].toUpperCase()}${state.slice(1)}`
    return [id, why ? `${name}: ${why}` : name]
  }
  return Object.fromEntries(items.map(said))
}

/** Reads the page until it is what an operation says by then. */
async function agrees(page: Page, said: () => Promise<Record<string, string>>): Promise<void> {
  let [shown, is]: Record<string, string>[] = [{}, {}]
  const isSame = async () => {
    ;[shown, is] = [await listed(page), await said()]
    return Object.keys(is).length > 3 && isDeepStrictEqual(shown, is)
  }
  await until('the page says what the operation says', isSame).catch(() => undefined)
  expect(shown).toEqual(is)
}

test('what lands, comes back and waits is shown as the operations say, as it happens', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=landings')
  await agrees(page, landings)
  await playLine(asking, repo)
  await agrees(page, landings)
  const names = await page.locator('main .list [data-id]').allInnerTexts()
  expect(names.slice(0, 2)).toEqual([
    expect.stringContaining('docs/opening'),
    expect.stringContaining('feature/search'),
  ])
  await page.getByRole('link', { name: 'Lower the price for the sale' }).click()
  const why = page.getByRole('complementary').getByRole('region', { name: 'Why' })
  await expectSeen(why.getByText('it conflicts with main in src/price.ts'))
  await expectSeen(why.getByText('src/price.ts', { exact: true }))
  await page.getByRole('link', { name: 'Add the tax of each country' }).click()
  await expectSeen(why.getByText('1 failed, 40 passed'))
  await takeOut(page)
  await putIn(page)
  // Under the pointer no row is added.
  await page.mouse.move(0, 0)
  await agrees(page, landings)
})

async function takeOut(page: Page): Promise<void> {
  const row = page.locator('main li', { hasText: 'feature/search' })
  await row.getByRole('button', { name: /^Cancel landing L/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel landing' }).click()
  await expectSeen(page.getByText(/^Landing L\d+ was cancelled$/))
  await expectSeen(row.getByText('taken out of the line'))
}

async function putIn(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Land a branch' }).click()
  await dialog.getByLabel('Task or branch').fill('feature/search')
  await dialog.getByRole('combobox', { name: 'Project' }).selectOption('shop')
  await dialog.getByRole('button', { name: 'Land', exact: true }).click()
  await expectSeen(page.getByText(/^Branch feature\/search is in line for main/))
}

test('worktrees are listed as they stand, with what they may conflict with', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=worktrees')
  await agrees(page, worktrees)
  await page.getByRole('link', { name: 'Send the mail from our own address' }).click()
  const sheet = page.getByRole('complementary', { name: 'Worktree S-mail.1' })
  await expectSeen(sheet.getByText('refs/leasehold/salvage/S-mail.1', { exact: true }))
  await expectSeen(sheet.getByRole('list', { name: /Changed/ }).getByText('src/mail.ts'))
  const touches = ['src/mail.ts']
  await on.daemon.ok('task.create', { id: 'S-post', title: 'Post it', project: 'shop', touches })
  await on.daemon.ok('task.claim', { id: 'S-post', agent: 'ada' })
  await page.reload()
  await expectSeen(sheet.getByRole('listitem').filter({ hasText: /S-post .*in src\/mail\.ts/ }))
  await page.getByLabel('State').selectOption('ready')
  await until('only what is in use', async () => {
    return Object.keys(await listed(page)).join() === 'S-stock.1'
  })
})

test('a task says where its work is, and by which commit it is done', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/work?id=S-price')
  const branch = page.getByRole('region', { name: 'Branch' })
  await expectSeen(branch.getByText('leasehold/S-price-1'))
  await expectSeen(branch.getByText('Landed'))
  await expectSeen(branch.getByText(repo.head('main').slice(0, 12)))
  await visit(page, '#/work?id=S-sale')
  await expectSeen(branch.getByText(/conflict/))
  await branch.getByRole('link', { name: /^L\d+ onto main$/ }).click()
  await expectSeen(page.getByRole('complementary', { name: /^Landing L/ }))
})
