import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TrustWatch } from '../../src/daemon/dispatch/trust.ts'
import { codexTrust, isEverTrusted } from '../../src/machine/codex_trust.ts'
import { PRESETS } from '../../src/daemon/config/presets.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { servingPlace, startDaemon } from '../doors/serving.ts'
import { until, sandbox, type Sandbox } from '../support/processes.ts'
import { Checkout } from './checkouts.ts'

/** What the real program listed: see test/fixtures/conversations. */
const RECORDED = JSON.parse(
  readFileSync(
    new URL('../fixtures/conversations/codex-0.166.0/hooks_list.json', import.meta.url),
    'utf8',
  ),
) as Record<'untrusted' | 'trusted' | 'untrusted_folder', object[]>

/** Answers what `codex app-server` answered. */
const PROGRAM = (hooks: object[]) => `#!${process.execPath}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  const say = (result) => console.log(JSON.stringify({ id, result }))
  if (method === 'initialize') say({ userAgent: 'codex' })
  if (method === 'hooks/list') say({ data: [{ cwd: '/repo', hooks: ${JSON.stringify(hooks)} }] })
})
`

function withCodex(place: Sandbox, hooks: object[]): NodeJS.ProcessEnv {
  const bin = place.path('bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'codex'), PROGRAM(hooks))
  chmodSync(join(bin, 'codex'), 0o755)
  return { PATH: `${bin}:${process.env['PATH']}`, HOME: place.home }
}

describe('hooks that Codex does not run', () => {
  test.each([
    ['untrusted', 'untrusted'],
    ['untrusted_folder', 'untrusted'],
    ['trusted', 'trusted'],
  ] as const)('are known by what it lists itself: %s', async (state, trust) => {
    const place = sandbox()
    expect(await codexTrust(place.home, withCodex(place, RECORDED[state]))).toBe(trust)
  })

  test('are told by init, init --check and doctor, with the way out', async () => {
    const repo = new Checkout(sandbox())
    repo.installReal()
    const env = withCodex(repo.place, RECORDED.untrusted)
    const told = /Codex runs no hook of Leasehold here: nobody has trusted them[^]*type \/hooks/
    const init = await repo.place.cli(['init', '--yes', '--client', 'codex'], {
      cwd: repo.root,
      env,
    })
    expect(init).toMatchObject({ code: 0 })
    expect(init.out).toMatch(told)
    const look = { cwd: repo.root, env: { ...env, CI: '' } }
    const check = await repo.place.cli(['init', '--check'], look)
    expect(check).toMatchObject({ code: 5 })
    expect(check.err).toMatch(told)
    const doctor = await repo.place.cli(['doctor'], look)
    expect(doctor).toMatchObject({ code: 1 })
    expect(doctor.out).toMatch(told)
    withCodex(repo.place, RECORDED.trusted)
    expect(await repo.place.cli(['init', '--check'], look)).toMatchObject({ code: 0 })
  })

  test('are told by the dispatcher that starts it there, once, and as an alert', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, '/'))
    onTestFinished(() => store.close())
    const said: string[] = []
    const watch = (hooks: object[]) =>
      new TrustWatch(store, withCodex(place, hooks), (sentence) => said.push(sentence))
    const alerts = async () =>
      (await daemon.ok('alert.list')).items.map((each: { rule: string; message: string }) => each)
    const first = watch(RECORDED.untrusted)
    first.look(PRESETS.get('claude')!, place.home)
    first.look(PRESETS.get('codex')!, place.home)
    first.look(PRESETS.get('codex')!, place.home)
    const told = `in ${place.home}: Codex runs no hook`
    await until('there is an alert', async () => (await alerts()).length > 0)
    expect(said).toEqual([expect.stringContaining(told)])
    expect(await alerts()).toMatchObject([
      { rule: 'hooks_untrusted', subject: place.home, message: expect.stringContaining(told) },
    ])
    watch(RECORDED.trusted).look(PRESETS.get('codex')!, place.home)
    await until('the alert is over', async () => (await alerts()).length === 0)
  })

  test('are told to the agent itself by our MCP server, from what Codex has written down', () => {
    const repo = new Checkout(sandbox())
    const env = { HOME: repo.place.home }
    expect(isEverTrusted(repo.root, env)).toBe(true)
    repo.write('.codex/hooks.json', '{"command": "leasehold hook codex pre-tool-use"}')
    expect(isEverTrusted(repo.root, env)).toBe(false)
    const key = `${repo.root}/.codex/hooks.json:pre_tool_use:0:0`
    mkdirSync(join(repo.place.home, '.codex'), { recursive: true })
    writeFileSync(join(repo.place.home, '.codex/config.toml'), `[hooks.state."${key}"]\n`)
    expect(isEverTrusted(join(repo.root, 'src'), env)).toBe(true)
  })
})
