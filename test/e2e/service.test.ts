import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { serviceOf } from '../../src/machine/service.ts'
import { because, type Sandbox, sandbox } from '../support/processes.ts'

// Named here: in place, knip takes it for a program of a package.
const ANALYZE = 'systemd-analyze'
const hasAnalyze = spawnSync(ANALYZE, ['--version']).status === 0

/** No user instance of systemd runs here: this stands for one, and notes what it is told. */
function withSystemd(place: Sandbox): () => string {
  const folder = place.path('bin')
  const log = place.path('told')
  mkdirSync(folder)
  writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\necho "$*" >> '${log}'\n`, { mode: 0o755 })
  place.env['PATH'] = `${folder}:${place.env['PATH']}`
  return () => readFileSync(log, 'utf8')
}

/** A state folder with all that a unit file has to quote. */
function oddState(place: Sandbox): void {
  place.env['LEASEHOLD_DIR'] = place.path('my "web" 100% $HOME/.leasehold')
}

// reason: a unit of systemd is for Linux; launchd has its own test
describe.skipIf(process.platform !== 'linux')('leasehold service', () => {
  test('writes a unit for this store alone, starts it, and takes it away again', async () => {
    const place = sandbox()
    const told = withSystemd(place)
    const { name, file } = await place.ok(['service', 'install', '--port', '0'])
    expect(file).toBe(join(place.home, '.config/systemd/user', name))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(told()).toBe(`--user daemon-reload\n--user enable --now ${name}\n`)
    expect(await place.ok(['service', 'status'])).toMatchObject({ installed: true, active: true })
    const other = { env: { LEASEHOLD_DIR: place.path('other') } }
    expect(await place.ok(['service', 'status'], other)).toMatchObject({ installed: false })
    await place.ok(['service', 'uninstall'])
    expect(existsSync(file)).toBe(false)
    expect(told()).toContain(`--user disable --now ${name}`)
    await place.refused(['service', 'uninstall'], 'not_found', 3)
  })

  test('the unit is one that systemd accepts, whatever the folder is called', async ({ skip }) => {
    const place = sandbox()
    withSystemd(place)
    oddState(place)
    const { file } = await place.ok(['service', 'install'])
    // reason: not every machine has systemd
    if (!hasAnalyze) skip(because('systemd-analyze is not here'))
    const env = { ...process.env, XDG_RUNTIME_DIR: place.folder }
    const verify = spawnSync(ANALYZE, ['verify', '--user', file], { encoding: 'utf8', env })
    const { status, stderr } = verify
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  test('what the unit starts serves this store', async () => {
    const place = sandbox()
    withSystemd(place)
    oddState(place)
    const { file } = await place.ok(['service', 'install', '--port', '0'])
    const unit = readFileSync(file, 'utf8')
    // As systemd reads it: quotes with backslashes, and doubled signs.
    const read = (text: string) =>
      [...text.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, each]) =>
        each!.replaceAll(/\\(.)/g, '$1').replaceAll('%%', '%').replaceAll('$$', '$'),
      )
    const [, line] = /^ExecStart=(.*)$/m.exec(unit)!
    const [, variable] = /^Environment=(.*)$/m.exec(unit)!
    const env = { LEASEHOLD_DIR: read(variable!)[0]!.replace('LEASEHOLD_DIR=', '') }
    expect(env.LEASEHOLD_DIR).toBe(place.env['LEASEHOLD_DIR'])
    const server = place.start([], { program: read(line!), env, input: '' })
    await server.said(/serving/)
    await place.refused(['service', 'install'], 'held', 5, {
      env: { XDG_CONFIG_HOME: place.path('elsewhere') },
    })
    server.kill('SIGTERM')
    expect((await server.ended).code).toBe(0)
  })

  test('without systemd it says what was written, and what to run where there is one', async () => {
    const place = sandbox()
    place.env['PATH'] = place.path('nothing')
    const { message, next } = await place.refused(['service', 'install'], 'unavailable', 75)
    expect(message).toMatch(/\.service is written, but was not started: /)
    expect(next).toContain('systemctl --user daemon-reload && systemctl --user enable --now')
  })
})

test('a launchd agent is well-formed XML that names the program', () => {
  const { platform } = process
  Object.defineProperty(process, 'platform', { value: 'darwin' })
  const service = serviceOf('leasehold-web', { HOME: '/Users/ada' })
  Object.defineProperty(process, 'platform', { value: platform })
  expect(service.file).toBe('/Users/ada/Library/LaunchAgents/leasehold-web.plist')
  const text = service.text({ argv: ['/bin/node', 'a & <b>'], env: { A: '1' }, about: '' })
  const parse =
    'import plistlib, sys; print(plistlib.loads(sys.stdin.buffer.read())["ProgramArguments"])'
  const read = spawnSync('python3', ['-c', parse], { input: text, encoding: 'utf8' })
  expect(read.stderr).toBe('')
  expect(read.stdout.trim()).toBe("['/bin/node', 'a & <b>']")
})
