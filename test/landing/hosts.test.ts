import type { Landing } from '../../src/core/schema/landing.ts'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { land } from '../../src/core/landing/land.ts'
import { forceRelease } from '../../src/core/locks/lock.ts'
import { settingKey } from '../../src/core/queue/host_settings.ts'
import { applySettings } from '../../src/core/queue/settings.ts'
import { hostIn } from '../../src/machine/host.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { startDaemon } from '../doors/serving.ts'
import { dispatching, script } from '../support/dispatching.ts'
import { gitIn, GitRepo, gitRepo } from '../support/git_repo.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { BIN, stateOf, until } from '../support/processes.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/test/lander_process.mjs', import.meta.url))
const [UNSHARE] = ['unshare'] as const

/** A command on a host that is called `name`: all else is as here. */
const on = (name: string, ...command: string[]) => [
  ...[UNSHARE, '--uts', '/bin/sh', '-c', 'echo "$0" > /proc/sys/kernel/hostname; exec "$@"'],
  ...[name, ...command],
]

const [unshare, ...rest] = on('another', 'true')
const isSkipped = spawnSync(unshare!, rest).status !== 0

const COMMIT = 'git -c user.name=x -c user.email=x@x commit -q --no-verify'

test('a state folder is one host, whatever that is called, and two are two', () => {
  const [one, two] = [join(temporaryFolder(), 'state'), temporaryFolder()]
  const id = hostIn(one)
  expect(hostIn(one)).toBe(id)
  expect(hostIn(two)).not.toBe(id)
  expect(readdirSync(one)).toEqual(['host'])
})

// reason: only who may make a namespace can give a host a name of its own
describe.skipIf(isSkipped)('a host that changes its name', () => {
  test.each(['sqlite', 'postgres'])(
    'is the same host: slots count, worktrees are cared for and landed (%s)',
    async (kind) => {
      const at = dispatching()
      const repo = gitRepo(at.place.path('repo'))
      const body =
        'mkdir "$OUT/alone" || echo both >> "$OUT/wrong"; begin; until_there go; ' +
        `echo "$LEASEHOLD_TASK" > "$LEASEHOLD_TASK"; git add -A; ${COMMIT} -m Work; ` +
        'rmdir "$OUT/alone"; finish'
      const web = {
        agent: 'sh',
        path: repo.top,
        worktrees: { keep: { days: 0 } },
        land: { onto: 'main', auto: true },
      }
      const slots = { max: 1 }
      at.configure({ slots, agents: { sh: script(body) }, projects: { web } })
      const env = kind === 'postgres' ? { LEASEHOLD_STORE: postgresUrl(at.place.state) } : {}
      const serve = async (name: string) => {
        const program = on(name, process.execPath, BIN)
        at.daemon = await startDaemon(at.place, { program, env })
      }
      await serve('before')
      await at.add('one', 'one')
      await at.seen('start', 1)
      const program = on('after', process.execPath, BIN)
      const second = await at.place.start(['serve', '--port', '0'], { program, env }).ended
      expect(second.err).toMatch(/already running on this database/)
      await at.daemon.stop()
      await serve('after')
      await at.add('two', 'two')
      const { dispatchers } = await until('its slot is seen to be used', async () => {
        const status = await at.daemon.ok('queue.status')
        return status.active.slots_used === 1 && status
      })
      expect(dispatchers).toMatchObject([{ slots_used: 1, slots_max: 1 }])
      at.write('go')
      for (const id of ['one', 'two']) {
        const { metadata } = await at.become(id, 'done')
        expect(metadata.proof).toMatchObject({ onto: 'main' })
      }
      expect(at.wrong()).toEqual([])
      expect(repo.git('ls-tree', '--name-only', 'main')).toMatch(/one\ntwo/)
      await at.daemon.stop()
      await serve('later')
      const isEmpty = async () => (await at.daemon.ok('worktree.list')).items.length === 0
      await until('what is landed is not kept', isEmpty)
    },
    120_000,
  )
})

/** Two hosts with a clone each, and a lander; what they share is a remote and the database. */
class Hosts {
  readonly url = postgresUrl(temporaryFolder())
  readonly origin = join(temporaryFolder(), 'origin.git')
  readonly seed = gitRepo(join(temporaryFolder(), 'seed'))
  readonly store

  constructor() {
    gitIn('/', 'clone', '--quiet', '--bare', this.seed.top, this.origin)
    this.seed.git('remote', 'add', 'origin', this.origin)
    const dir = temporaryFolder()
    this.store = openStore(placeOf({ LEASEHOLD_DIR: dir, LEASEHOLD_STORE: this.url }, dir))
    onTestFinished(() => this.store.close())
  }

  async begin(): Promise<this> {
    await this.store.follow(20)
    await this.store.write((view) => {
      const key = (field: string) => settingKey('projects', 'web', 'land', field)
      applySettings(view, 'all', { [key('onto')]: 'main', [key('checks')]: true })
    })
    return this
  }

  /** The top of a clone with a state folder of its own. */
  clone(name: string, check: string): string {
    const top = join(temporaryFolder(), name)
    gitIn('/', 'clone', '--quiet', this.origin, top)
    new GitRepo(top).write({ '.git/info/exclude': '.leasehold/\n' })
    mkdirSync(join(top, '.leasehold'), { mode: 0o700 })
    const shell = ['/bin/sh', '-c', check]
    const landing = { onto: 'main', remote: 'origin', check: shell }
    const config = { projects: { web: { path: '.', agent: 'shell', land: landing } } }
    writeFileSync(join(top, '.leasehold', 'config.json'), JSON.stringify(config))
    return top
  }

  async lander(name: string, top: string, more: Record<string, string> = {}) {
    const [command, ...args] = on(name, process.execPath, PROGRAM)
    const env = {
      PATH: process.env['PATH'],
      LEASEHOLD_DIR: join(top, '.leasehold'),
      LEASEHOLD_STORE: this.url,
      LEASEHOLD_TRUST_CONFIG: 'yes',
      ...more,
    }
    const child = spawn(command!, args, { cwd: top, env, stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => kill(child))
    await once(child.stdout, 'data')
    return child
  }

  /** A branch at the remote that is behind its main. */
  branch(name: string): void {
    this.seed.git('switch', '--quiet', '-C', name, 'main')
    this.seed.commit(name, { [name]: name })
    this.seed.git('push', '--quiet', 'origin', name)
    this.seed.git('switch', '--quiet', 'main')
  }

  ask(id: string): Promise<Landing> {
    return this.store.write((view) => land(view, { id, project: 'web' }, callerOf('ada')))
  }

  ended({ id }: Landing): Promise<Landing> {
    return until(`landing ${id} is over`, async () => {
      const landing = await this.store.read((view) => view.get('landing', id)!)
      return landing.ended_at !== null && landing
    })
  }

  /** The leases of landers are over, as their TTL would have it. */
  expire(): Promise<void> {
    const admin = { ...callerOf('admin'), admin: true }
    return this.store.write((view) => {
      const names = [...view.scan('leases_by_expiry', '')].map(({ name }) => name)
      for (const name of names.filter((each) => each.startsWith('leasehold:lander:'))) {
        forceRelease(view, { name }, admin)
      }
    })
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

// reason: only who may make a namespace can give a host a name of its own
describe.skipIf(isSkipped)('a lander that is gone while it pushes', () => {
  test.each(['dies', 'goes on too late'])(
    'leaves its line to another host, once: it %s',
    async (how) => {
      const hosts = await new Hosts().begin()
      const first = hosts.clone('first', 'true')
      const gate = join(temporaryFolder(), 'gate')
      const check = `: > ${gate}.entered; until [ -e ${gate} ]; do sleep 0.02; done`
      const second = hosts.clone('second', check)
      for (const id of ['one', 'two']) hosts.branch(id)
      hosts.seed.commit('Meanwhile', { 'b.txt': 'b' })
      hosts.seed.git('push', '--quiet', 'origin', 'main')
      const asked = [await hosts.ask('one')]
      const lander = await hosts.lander('first', first, { LEASEHOLD_STOP_AT: 'lander:proposed' })
      await until('it is about to push', () => stateOf(lander.pid!) === 'T')
      const trees = join(first, '.leasehold', 'landers')
      const treesOf = () => readdirSync(trees).flatMap((each) => readdirSync(join(trees, each)))
      const before = treesOf()
      expect(before).toHaveLength(1)
      if (how === 'dies') await kill(lander)
      else await hosts.expire()
      asked.push(await hosts.ask('two'))
      await hosts.lander('second', second)
      await until('the other checks it', () => existsSync(`${gate}.entered`))
      if (how !== 'dies') {
        lander.kill('SIGCONT')
        await until('what it began has ended', () => !treesOf().includes(before[0]!))
      }
      writeFileSync(gate, '')
      for (const each of asked) {
        expect(await hosts.ended(each)).toMatchObject({ status: 'landed', reason: null })
      }
      const subjects = gitIn(hosts.origin, 'log', '--reverse', '--format=%s', 'main').split('\n')
      expect(subjects).toEqual(['Begin', 'Meanwhile', 'one', 'two'])
    },
    120_000,
  )
})
