import { type Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { finish, type Json, type Served, startDaemon } from '../doors/serving.ts'
import { Dispatching, killAll } from '../support/dispatching.ts'
import { Sandbox } from '../support/processes.ts'
import { launch } from './browser.ts'

/** What the tests of one file share: a place, the daemon that serves it, and a browser. */
export interface Shared {
  place: Sandbox
  all: Dispatching
  daemon: Served
  browser: Browser
}

/**
 * A server and a browser for all tests of a file; `config` is made once there is a place, and
 * `before` is done before anybody opens its store.
 */
export function shareDashboard(
  config: (place: Sandbox) => Json = () => ({}),
  before: (place: Sandbox) => Promise<void> = async () => undefined,
): Shared {
  const shared = {} as Shared
  beforeAll(async () => {
    shared.place = new Sandbox()
    shared.all = new Dispatching(shared.place)
    shared.all.configure(config(shared.place))
    await before(shared.place)
    await shared.place.ok(['task', 'add', 'Here from the start', '--id', 'first'])
    const both = await Promise.all([startDaemon(shared.place), launch()])
    ;[shared.daemon, shared.browser] = both
    shared.all.daemon = shared.daemon
  })
  afterAll(async () => {
    await shared.browser.close()
    await finish(shared.place)
    // Agents do not carry the mark of the place.
    await killAll(shared.all.processes())
    await shared.place.close()
  })
  return shared
}
