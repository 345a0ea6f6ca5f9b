import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import type { Sandbox } from '../support/processes.ts'
import { LOOKS } from './browser.ts'
import type { Shared } from './served.ts'

/** A page of the dashboard, and whatever its console complained about. */
export interface Opened {
  page: Page
  context: BrowserContext
  complaints: string[]
}

/** A window of its own, closed when the test has ended; by then nothing may have gone wrong. */
export async function openWindow(
  { browser }: Pick<Shared, 'browser'>,
  more: BrowserContextOptions = {},
  expected?: RegExp,
): Promise<Opened> {
  const context = await browser.newContext({ ...LOOKS, ...more })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() !== 'error' || expected?.test(text)) return
    // A resource that could not be loaded is named only there.
    complaints.push(`${text} (${message.location().url})`)
  })
  onTestFinished(async () => {
    await context.close()
    // As one text: of a list in which nothing should be, only its length is printed.
    expect(complaints.join('\n')).toBe('')
  })
  return { page, context, complaints }
}

/** The link that `leasehold up --link` prints. */
export async function linkFrom(place: Sandbox, ...flags: string[]): Promise<string> {
  return (await place.ok(['up', '--link', ...flags])).link as string
}

/** Signed in by a link of its own. */
export async function signIn(
  shared: Pick<Shared, 'browser' | 'place'>,
  { flags = [], expected }: { flags?: string[]; expected?: RegExp } = {},
): Promise<Opened> {
  const opened = await openWindow(shared, {}, expected)
  await opened.page.goto(await linkFrom(shared.place, ...flags))
  await opened.page.getByText('Live', { exact: true }).waitFor()
  return opened
}

/** Goes to a view, without loading the page anew. */
export async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
}

/** Expects something to be on the page before long. */
export async function expectSeen(what: Locator): Promise<void> {
  await what.first().waitFor()
}

/** A text without what is another a moment later, or on another clock: times, and how long. */
export const steady = (text: string) =>
  text
    .replaceAll(/\d{4}-[\d-]+T[\d:.]+Z|\d\d:\d\d:\d\d/g, '…')
    .replaceAll(/\d+ ?(?:s|m|min|h)\b/g, '…')
