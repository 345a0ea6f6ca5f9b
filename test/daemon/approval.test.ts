import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { settingKey } from '../../src/core/queue/host_settings.ts'
import { approve, isSafe } from '../../src/daemon/config/approval.ts'
import { readConfig, readSaid } from '../../src/daemon/config/config.ts'
import { fileSchema } from '../../src/daemon/config/schema.ts'
import { queueSettingsOf } from '../../src/daemon/config/shared_settings.ts'
import { finish, type Served, startDaemon } from '../doors/serving.ts'
import { type Sandbox, sandbox, TEST_CLI, until } from '../support/processes.ts'

/** Nobody writes into the state folder any more that is about to be removed. */
async function untilOver(daemon: Served): Promise<void> {
  const run = async () => (await daemon.ok('run.list', {})).items[0]
  await until('the run is over', async () => (await run()).ended_at !== null)
}

/** A place where nothing is trusted that nobody approved. */
function untrusting(): { place: Sandbox; env: NodeJS.ProcessEnv; witness: string } {
  const place = sandbox()
  place.env['LEASEHOLD_TRUST_CONFIG'] = undefined
  mkdirSync(place.state, { recursive: true, mode: 0o700 })
  const env = { HOME: place.home } as NodeJS.ProcessEnv
  return { place, env, witness: place.path('witness') }
}

const agent = (witness: string, ...more: string[]) => ({
  projects: { web: { agent: 'mine', path: '.' } },
  agents: { mine: { command: ['/bin/sh', '-c', `echo ran >> ${witness}`, ...more] } },
})

function write(place: Sandbox, config: object): void {
  writeFileSync(join(place.state, 'config.json'), JSON.stringify(config), { mode: 0o600 })
}

describe('programs in config.json', () => {
  test('count only as they were approved: a changed one is left out, its project too', async () => {
    const { place, env, witness } = untrusting()
    write(place, agent(witness))
    const before = readConfig(place.state, env)
    expect(before.waiting).toEqual(['agents.mine', 'projects.web'])
    expect(Object.keys(before.projects)).toEqual([])
    await place.ok(['config', 'approve', '--yes'])
    expect(readConfig(place.state, env)).toMatchObject({ waiting: [], projects: { web: {} } })
    write(place, agent(witness, 'another argument'))
    const changed = readConfig(place.state, env)
    expect(changed.waiting).toEqual(['agents.mine', 'projects.web'])
    expect(changed.projects['web']).toBeUndefined()
    expect(changed.agents['mine']).toBeUndefined()
  })

  test('a check that was approved proves what is done until another is', async () => {
    const { place, env, witness } = untrusting()
    const check = ['npm', 'test']
    const landing = (land?: object) => {
      const { agents } = agent(witness)
      return { agents, projects: { web: { agent: 'mine', path: '.', ...(land && { land }) } } }
    }
    write(place, landing({ onto: 'main', check }))
    expect(readConfig(place.state, env).landing).toEqual({})
    await place.ok(['config', 'approve', '--yes'])
    for (const edited of [landing(), landing({ check: ['true'] }), {}]) {
      write(place, edited)
      const config = readConfig(place.state, env)
      expect(config.landing['web']).toMatchObject({ onto: 'main', check })
      expect(config.projects['web']).toBeUndefined()
      const said = queueSettingsOf(config)
      expect(said[settingKey('projects', 'web', 'land', 'checks')]).toBe(true)
    }
    write(place, landing())
    await place.ok(['config', 'approve', '--yes'])
    expect(readConfig(place.state, env).landing).toEqual({})
  })

  test('presets too are started only where a person said so', () => {
    const { place, env } = untrusting()
    write(place, { projects: { web: { agent: 'shell', path: '/' } } })
    expect(readConfig(place.state, env).waiting).toEqual(['projects.web'])
  })

  test('approval is of this folder, and lies outside of it', async () => {
    const { place, env, witness } = untrusting()
    write(place, agent(witness))
    await place.ok(['config', 'approve', '--yes'])
    const copy = place.path('copy')
    mkdirSync(copy, { mode: 0o700 })
    writeFileSync(join(copy, 'config.json'), readFileSync(join(place.state, 'config.json')))
    expect(readConfig(copy, env).waiting).toHaveLength(2)
    rmSync(join(place.home, '.local'), { recursive: true })
    expect(readConfig(place.state, env).waiting).toHaveLength(2)
  })

  test('an agent cannot approve: not with a token, in a run, or without a person', async () => {
    const { place, witness } = untrusting()
    write(place, agent(witness))
    for (const env of [{ LEASEHOLD_RUN: '1.1' }, { LEASEHOLD_TOKEN: 'lh_x', LEASEHOLD_URL: 'x' }]) {
      const { code } = await place.cli(['config', 'approve', '--yes'], { env })
      expect(code).not.toBe(0)
    }
    const unasked = await place.cli(['config', 'approve'])
    expect(unasked.code).toBe(4)
    expect(existsSync(join(place.home, '.local'))).toBe(false)
  })
})

/** Every setting of a schema: its path, with `*` for any name. */
function settingsIn(schema: unknown, path: string[] = []): string[] {
  const { def } = schema as { def: Record<string, unknown> }
  const inner = def['innerType'] ?? def['out']
  if (inner !== undefined) return settingsIn(inner, path)
  if (def['valueType'] !== undefined) return settingsIn(def['valueType'], [...path, '*'])
  if (def['type'] !== 'object') return [path.join('.')]
  const shape = Object.entries(def['shape'] as object)
  return shape.flatMap(([name, each]) => settingsIn(each, [...path, name]))
}

/** What a folder from elsewhere would say, setting by setting; several that go together are one. */
const STEERING: Record<string, object> = {
  'projects.*.path': { projects: { web: { path: '/' } } },
  'projects.*.agent': { projects: { web: { agent: 'shell' } } },
  'projects.*.resources': { projects: { web: { resources: ['db'] } }, resources: { db: ['a'] } },
  'projects.*.land.*': { projects: { web: { land: { onto: 'main', remote: 'evil' } } } },
  'projects.*.worktrees.base': { projects: { web: { worktrees: { base: 'evil' } } } },
  'projects.*.worktrees.folder': { projects: { web: { worktrees: { folder: '/tmp/evil' } } } },
  'projects.*.worktrees.copy': { projects: { web: { worktrees: { copy: ['.env'] } } } },
  'projects.*.worktrees.setup': { projects: { web: { worktrees: { setup: ['evil'] } } } },
  'projects.*.worktrees.teardown': { projects: { web: { worktrees: { teardown: ['evil'] } } } },
  'projects.*.worktrees.salvage.ignored': {
    projects: { web: { worktrees: { salvage: { ignored: ['.env'] } } } },
  },
  'agents.*.*': { agents: { evil: { command: ['evil'], env: ['AWS_SECRET_ACCESS_KEY'] } } },
  'resources.*': { resources: { db: ['postgres://evil'] } },
  'memory.embeddings.*': {
    memory: {
      embeddings: {
        provider: 'openai',
        model: 'm',
        url: 'http://evil.example/v1',
        api_key_env: 'ANTHROPIC_API_KEY',
      },
    },
  },
  'alerts.webhook.*': {
    alerts: { webhook: { url: 'https://evil.example', secret_env: 'ANTHROPIC_API_KEY' } },
  },
  'alerts.command': { alerts: { command: ['evil'] } },
  'peers.listen': { peers: { listen: '192.0.2.1:80' } },
}

const covers = (pattern: string, setting: string) =>
  pattern === setting || (pattern.endsWith('.*') && setting.startsWith(pattern.slice(0, -1)))

describe('a folder from elsewhere', () => {
  const guarded = settingsIn(fileSchema()).filter((each) => !isSafe(each.split('.')))

  test('has no setting that is neither known to be safe nor tried here', () => {
    expect(settingsIn(fileSchema()).length).toBeGreaterThan(60)
    const untried = (setting: string) =>
      !Object.keys(STEERING).some((each) => covers(each, setting))
    expect(guarded.filter(untried)).toEqual([])
    const gone = (pattern: string) => !guarded.some((setting) => covers(pattern, setting))
    expect(Object.keys(STEERING).filter(gone)).toEqual([])
  })

  test.each(Object.entries(STEERING))('%s has no effect until it is approved', (_, said) => {
    const { place, env } = untrusting()
    write(place, {})
    const { waiting: none, ...usual } = readConfig(place.state, env)
    expect(none).toEqual([])
    write(place, said)
    const { waiting, ...now } = readConfig(place.state, env)
    expect(waiting).not.toEqual([])
    expect(now).toEqual(usual)
    approve(place.state, env, readSaid(place.state, env))
    const { waiting: after, ...approved } = readConfig(place.state, env)
    expect(after).toEqual([])
    expect(approved).not.toEqual(usual)
  })

  test('is not approved by a file that another may have written', async ({ skip }) => {
    const { place, env, witness } = untrusting()
    write(place, agent(witness))
    await place.ok(['config', 'approve', '--yes'])
    const folder = join(place.home, '.local/state/leasehold/approved')
    const file = join(folder, readdirSync(folder)[0]!)
    const waits = () => readConfig(place.state, env).waiting.length > 0
    expect(waits()).toBe(false)
    for (const [path, lax, own] of [
      [file, 0o620, 0o600],
      [folder, 0o770, 0o700],
    ] as const) {
      chmodSync(path, lax)
      expect(waits(), path).toBe(true)
      chmodSync(path, own)
      expect(waits(), path).toBe(false)
    }
    // reason: only root can give a file away
    if (process.getuid?.() !== 0) skip()
    chownSync(file, 12_345, 0)
    expect(waits()).toBe(true)
  })
})

test('a server starts nothing that nobody approved, says so, and begins when it is', async () => {
  const { place, witness } = untrusting()
  const alert = place.path('alerted')
  write(place, { ...agent(witness), alerts: { command: ['/usr/bin/touch', alert] } })
  const daemon = await startDaemon(place)
  onTestFinished(() => finish(place))
  const { task } = await daemon.ok('queue.add', { prompt: 'x', project: 'web', user: 'u' })
  const { sentence } = await daemon.ok('task.explain', { id: task.id })
  expect(sentence).toContain('no dispatcher serves project web')
  const doctor = await place.cli(['doctor'])
  expect(doctor.out).toContain('nobody has approved: agents.mine, projects.web, alerts.command')
  expect(daemon.running.err).toContain('leasehold config approve')
  await place.ok(['config', 'approve', '--yes'])
  await until('the agent ran', () => existsSync(witness))
  await untilOver(daemon)
  // Now an edit that somebody else makes: what ran before is not started in its new form.
  const evil = place.path('evil')
  write(place, agent(evil))
  const told = () => daemon.running.err.split('nobody has approved').length - 1
  await until('the change was noticed', () => told() === 2)
  const next = await daemon.ok('queue.add', { prompt: 'y', project: 'web', user: 'v' })
  const why = await daemon.ok('task.explain', { id: next.task.id })
  expect(why.sentence).toContain('no dispatcher serves project web')
  expect(existsSync(evil)).toBe(false)
  expect(existsSync(alert)).toBe(false)
})

test('planted: a server that asks nobody is caught by what its agent leaves', async () => {
  const { place, witness } = untrusting()
  write(place, agent(witness))
  const program = [process.execPath, TEST_CLI]
  const daemon = await startDaemon(place, { program, env: { LEASEHOLD_PLANT: 'R50' } })
  onTestFinished(() => finish(place))
  await daemon.ok('queue.add', { prompt: 'x', project: 'web', user: 'u' })
  await until('the agent ran', () => existsSync(witness))
  await untilOver(daemon)
  expect(readConfig(place.state, { HOME: place.home }).waiting).not.toEqual([])
})
