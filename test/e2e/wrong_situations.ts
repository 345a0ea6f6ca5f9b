import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import type { Scene, Situation } from './wrong_scene.ts'
import { ELSEWHERE, FILES } from './wrong_usage.ts'

/** Programs of the system, where it has them; no package brings them. */
const [MOUNT, UMOUNT] = ['mount', 'umount'] as const

function writeOver(scene: Scene, text: string): void {
  for (const name of fs.readdirSync(scene.state)) {
    if (/-(?:wal|shm)$/.test(name)) fs.rmSync(join(scene.state, name))
  }
  fs.writeFileSync(join(scene.state, 'leasehold.db'), text)
}

/** Of the installation, the store and its folder, and config.json. */
const HERE: Situation[] = [
  {
    wrong: 'Node is older than 20.19',
    run: 'task list',
    exit: 1,
    says: 'error: leasehold needs Node 20.19 or newer; this is v18.0.0',
    doctor: 'needs Node 20.19 or newer',
    stage: (scene) => {
      const old = scene.path('old.cjs')
      const said = "{ ...process.versions, node: '18.0.0' }"
      fs.writeFileSync(
        old,
        `Object.defineProperty(process, 'versions', { value: ${said} })
Object.defineProperty(process, 'version', { value: 'v18.0.0' })`,
      )
      return { program: [process.execPath, '--require', old, scene.bin] }
    },
  },
  {
    wrong: 'A checkout that was never built, in a folder that cannot be written',
    run: 'task list',
    exit: 1,
    says: 'error: leasehold is not built yet, and its folder cannot be written: …',
    doctor: 'its folder cannot be written',
    root: true,
    stage: (scene) => {
      const options = scene.bare('bin', 'build.mjs')
      const login = scene.nameless()
      fs.chmodSync(scene.path('app'), 0o555)
      return { ...options, ...login }
    },
  },
  {
    wrong: 'The packages were never installed',
    run: 'task list',
    exit: 1,
    says: 'error: leasehold could not be built\n  next: npm ci, then try again',
    doctor: 'could not be built',
    stage: (scene) => scene.bare('bin', 'build.mjs'),
  },
  {
    wrong: 'The native module of SQLite is missing, or was made for another machine',
    run: 'task add Two',
    exit: 1,
    says: 'error: SQLite could not be loaded in Node …LEASEHOLD_STORE=file:…',
    doctor: 'SQLite could not be loaded',
    stage: async (scene) => {
      await scene.used()
      return scene.bare('bin', 'dist')
    },
  },
  {
    wrong: 'No HOME, and a login that passwd does not know',
    run: 'task list',
    exit: 2,
    says: 'error: This login has no home folder, and HOME is not set…LEASEHOLD_DIR=…',
    doctor: 'HOME is not set',
    root: true,
    stage: (scene) => ({
      ...scene.nameless(),
      cwd: '/',
      env: { HOME: undefined, LEASEHOLD_DIR: undefined },
    }),
  },
  {
    wrong: 'The state folder cannot be written',
    run: 'task add Two',
    exit: 75,
    says: 'error: The store … cannot be written: …writable, or point LEASEHOLD_DIR elsewhere.',
    doctor: 'FAIL folder   … cannot be written: EACCES…',
    root: true,
    stage: async (scene) => {
      await scene.used()
      const login = scene.nameless()
      for (const name of fs.readdirSync(scene.state)) fs.chmodSync(join(scene.state, name), 0o400)
      fs.chmodSync(scene.state, 0o500)
      return login
    },
  },
  {
    wrong: 'The disk is full',
    run: 'task add Two',
    exit: 75,
    says: 'error: The disk is full: … cannot grow\n  next: Free some space. …',
    doctor: 'FAIL folder   … cannot be written: ENOSPC…',
    root: true,
    stage: async (scene) => {
      fs.mkdirSync(scene.state, { mode: 0o700 })
      const options = ['-t', 'tmpfs', '-o', 'size=2m,mode=0700', 'tmpfs', scene.state]
      execFileSync(MOUNT, options)
      scene.atEnd(() => execFileSync(UMOUNT, ['--lazy', scene.state]))
      await scene.used(scene.apart)
      const { bavail, bsize } = fs.statfsSync(scene.state)
      fs.writeFileSync(join(scene.state, 'filler'), Buffer.alloc(bavail * bsize))
      return scene.apart
    },
  },
  {
    wrong: 'The database is damaged',
    run: 'task list',
    exit: 76,
    says: 'error: The store … is damaged: file is not a database…leasehold db restore BACKUP',
    doctor:
      'FAIL store    … is damaged: file is not a database\n     next: leasehold db restore BACKUP',
    stage: async (scene) => {
      await scene.used(scene.apart)
      writeOver(scene, 'no database, though of some length')
      return scene.apart
    },
  },
  {
    wrong: 'The database was removed',
    run: 'task add Two',
    exit: 76,
    says: 'error: The store has lost what was committed: …leasehold db restore BACKUP…',
    doctor: 'FAIL store    The store has lost what was committed…',
    stage: async (scene) => {
      await scene.used(scene.apart)
      for (const name of fs.readdirSync(scene.state)) {
        if (name.startsWith('leasehold.db')) fs.rmSync(join(scene.state, name))
      }
      return scene.apart
    },
  },
  {
    wrong: 'The newest state of a file store is damaged',
    run: 'task add Two',
    exit: 76,
    says: 'error: The store … is damaged: …leasehold db restore --last-good',
    doctor: 'FAIL store    state.…',
    stage: async (scene) => {
      await scene.used(FILES)
      const newest = fs.readdirSync(scene.state).filter((name) => /^state\.\d+\.json$/.test(name))
      fs.writeFileSync(join(scene.state, newest.toSorted().at(-1)!), 'no JSON')
      return FILES
    },
  },
  {
    wrong: 'A file stands where the state folder should be',
    run: 'task list',
    exit: 2,
    says:
      'error: … is not a folder\n' +
      '  next: Move that file away, or point LEASEHOLD_DIR elsewhere.',
    doctor: 'is not a folder',
    stage: (scene) => fs.writeFileSync(scene.state, ''),
  },
  {
    wrong: 'The state folder is another login’s',
    run: 'task list',
    exit: 4,
    says:
      'error: … belongs to another login (uid 12345)\n' +
      '  next: Use a state folder of your own: set LEASEHOLD_DIR.',
    doctor: 'belongs to another login',
    root: true,
    stage: async (scene) => {
      await scene.used()
      scene.nameless()
    },
  },
  {
    wrong: 'The state folder can be read by other logins',
    run: 'task list',
    exit: 4,
    says: 'error: … can be read or written by other logins\n  next: chmod 700 …',
    doctor: 'can be read by other logins',
    stage: async (scene) => {
      await scene.used()
      fs.chmodSync(scene.state, 0o755)
    },
  },
  {
    wrong: 'git tracks the state folder',
    run: 'init --check',
    exit: 5,
    says: 'error: Not as leasehold init would leave it: …',
    doctor: 'FAIL git      git tracks …',
    stage: async (scene) => {
      await scene.used()
      scene.git('init')
      scene.git('add', 'state')
    },
  },
  {
    wrong: 'git is not installed',
    run: 'init --yes',
    exit: 3,
    says: 'error: … is a git checkout, and git is not on the PATH\n  next: Install git, …',
    doctor: 'FAIL hooks    … git is not on the PATH…',
    stage: (scene) => {
      scene.git('init')
      fs.mkdirSync(scene.path('bin'))
      return { env: { PATH: scene.path('bin') } }
    },
  },
  {
    wrong: 'leasehold is not on the PATH of the shell that runs the hooks',
    run: 'init --check',
    exit: 0,
    says: 'set up for Claude Code: … files are as they should be',
    doctor:
      'FAIL hooks    leasehold is not on the PATH: the hooks of Claude Code, ' +
      'pre-commit, pre-push do nothing…',
    stage: async (scene) => {
      scene.git('init')
      const options = { env: { LEASEHOLD_DIR: undefined } }
      await scene.cli(['init', '--yes', '--client', 'claude'], options)
      return options
    },
  },
  {
    wrong: 'config.json is not JSON',
    run: 'up',
    exit: 2,
    says: 'error: …config.json: not JSON at line 1, column …',
    doctor: 'FAIL config   …config.json: not JSON at line 1…',
    stage: (scene) => scene.config('{ "slots": '),
  },
  {
    wrong: 'config.json has a key that nobody knows',
    run: 'up',
    exit: 2,
    says: 'error: …config.json: slots.mx: no such key; did you mean max?…',
    doctor: 'FAIL config   …slots.mx: no such key…',
    stage: (scene) => scene.config({ slots: { mx: 3 } }),
  },
  {
    wrong: 'Nobody has approved the programs that config.json names',
    run: 'config approve',
    exit: 4,
    says: 'error: Only a person can approve what Leasehold may start…--yes',
    doctor: 'FAIL config   …leasehold config approve…',
    stage: async (scene) => {
      await scene.config({
        projects: { web: { path: '.', agent: 'sh' } },
        agents: { sh: { command: ['sh'] } },
      })
      return { env: { LEASEHOLD_TRUST_CONFIG: undefined } }
    },
  },
  {
    wrong: 'The program of a project’s agent is not installed',
    run: 'task list',
    exit: 0,
    says: '1 …',
    doctor: 'FAIL programs project web: no program no-such-agent…',
    stage: (scene) =>
      scene.config({
        projects: { web: { path: '.', agent: 'mine' } },
        agents: { mine: { command: ['no-such-agent'] } },
      }),
  },
  {
    wrong: 'The folder of a project is not there',
    run: 'task list',
    exit: 0,
    says: '1 …',
    doctor: 'FAIL programs project web: no folder …/gone…',
    stage: (scene) =>
      scene.config({
        projects: { web: { path: 'gone', agent: 'sh' } },
        agents: { sh: { command: ['sh'] } },
      }),
  },
  {
    wrong: 'A variable that an agent is to get is not set',
    run: 'task list',
    exit: 0,
    says: '1 …',
    doctor: 'FAIL programs project web: MY_KEY is not set…',
    stage: (scene) =>
      scene.config({
        projects: { web: { path: '.', agent: 'sh' } },
        agents: { sh: { command: ['sh'], env: ['MY_KEY'] } },
      }),
  },
]

export const SITUATIONS = [...HERE, ...ELSEWHERE]
