import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium as playwright } from 'playwright-core'

/**
 * A browser of our own: the one that comes as a package, or `LEASEHOLD_CHROMIUM`. Not with the
 * flags that the package proposes: those turn off the very checks that a page relies on.
 */
export async function launch(): Promise<Browser> {
  return playwright.launch({
    executablePath: process.env['LEASEHOLD_CHROMIUM'] ?? (await chromium.executablePath()),
    args: ['--no-sandbox', '--disable-gpu', '--disable-lcd-text'],
  })
}

/** The same on every machine, whatever its language. */
export const LOOKS = {
  locale: 'en-GB',
  timezoneId: 'UTC',
  viewport: { width: 1360, height: 850 },
  reducedMotion: 'reduce',
} as const satisfies BrowserContextOptions
