import * as fs from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scene, Situation } from './wrong_scene.ts'

async function listening(scene: Scene): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  scene.atEnd(() => server.close())
  return (server.address() as AddressInfo).port
}

async function serving(scene: Scene): Promise<number> {
  const { pid } = (await scene.cli(['--json', 'up', '--port', '0'])).json as { pid: number }
  scene.atEnd(() => scene.cli(['down']))
  return pid
}

const held = async (scene: Scene) => {
  await scene.cli(['lock', 'acquire', 'build', '--agent', 'amy'])
}

export const FILES = { env: { LEASEHOLD_STORE: 'file:' } }

/** Of servers, the environment, and what is asked for. */
export const ELSEWHERE: Situation[] = [
  {
    wrong: 'The port is taken',
    run: 'up --port PORT',
    exit: 75,
    says:
      'error: Port … is in use by node (PID: …)\n' +
      '  next: Choose another: --port 0 takes any that is free.',
    doctor: 'ok',
    stage: async (scene) => ({ env: { PORT: String(await listening(scene)) } }),
  },
  {
    wrong: 'The port is below 1024, and this login is not root',
    run: 'up --port 81',
    exit: 4,
    says:
      'error: This login may not listen at port 81\n' +
      '  next: Choose one from 1024 up, or leave --port out.',
    doctor: 'ok',
    root: true,
    stage: (scene) => {
      // reason: below 1024 is below 1024 only where the system has it so
      const lowest = '/proc/sys/net/ipv4/ip_unprivileged_port_start'
      if (Number(fs.readFileSync(lowest, 'utf8')) <= 81) throw new Error('81 is for everybody')
      return scene.nameless()
    },
  },
  {
    wrong: 'A server runs already',
    run: 'serve --port 0',
    exit: 75,
    says: 'error: Another leasehold server is already running on this database (PID: …)…',
    doctor: 'ok',
    stage: async (scene) => {
      await serving(scene)
      return scene.apart
    },
  },
  {
    wrong: 'The server was stopped by a signal',
    run: 'up',
    exit: 75,
    says: 'error: The server (PID: …) is stopped\n  next: Let it go on: kill -CONT …',
    doctor: 'FAIL server   … is stopped\n     next: Let it go on: kill -CONT …',
    stage: async (scene) => {
      process.kill(await serving(scene), 'SIGSTOP')
    },
  },
  {
    wrong: 'LEASEHOLD_STORE names nothing that we know',
    run: 'task list',
    exit: 2,
    says: 'error: LEASEHOLD_STORE is not a store: redis: is no kind…',
    doctor: 'LEASEHOLD_STORE is not a store',
    stage: () => ({ env: { LEASEHOLD_STORE: 'redis://here' } }),
  },
  {
    wrong: 'PostgreSQL does not answer',
    run: 'task list',
    exit: 75,
    says:
      'error: The store postgres://… did not answer: connect ECONNREFUSED …can be ' +
      'reached, then ask again.',
    doctor: 'FAIL store    The store postgres://… did not answer…',
    stage: () => ({
      env: { LEASEHOLD_STORE: 'postgres://me@127.0.0.1:1/none', LEASEHOLD_BUSY_TIMEOUT_MS: '200' },
    }),
  },
  {
    wrong: 'LEASEHOLD_STORE has a parameter that nobody knows',
    run: 'task list',
    exit: 2,
    says: 'error: LEASEHOLD_STORE has a parameter that nobody knows: shema…did you mean schema?',
    doctor: 'nobody knows: shema',
    stage: () => ({ env: { LEASEHOLD_STORE: 'postgres://me@127.0.0.1:1/none?shema=a' } }),
  },
  {
    wrong: 'LEASEHOLD_DIR is where nobody can make a folder',
    run: 'task add Fix',
    exit: 75,
    says: 'error: The store … cannot be written: ENOENT…or point LEASEHOLD_DIR elsewhere.',
    doctor: 'FAIL folder   /proc/x cannot be written…',
    stage: () => ({ env: { LEASEHOLD_DIR: '/proc/x' } }),
  },
  {
    wrong: 'A file store is asked for beside a database',
    run: 'task list',
    exit: 2,
    says: 'error: … already holds another store (leasehold.db)…file:FOLDER.',
    doctor: 'already holds another store',
    stage: async (scene) => {
      await scene.used()
      return FILES
    },
  },
  {
    wrong: 'A queue on a file store',
    run: 'queue add Fix --project web --user me',
    exit: 2,
    says: 'error: queue.add needs a database: a file store has no queue…leasehold db copy…',
    doctor: 'ok',
    stage: () => FILES,
  },
  {
    wrong: 'LEASEHOLD_TOKEN is set, and no server is known',
    run: 'task list',
    exit: 75,
    says:
      'error: LEASEHOLD_TOKEN is set, but no server is known\n' +
      '  next: Set LEASEHOLD_URL, or start one: leasehold up',
    doctor: 'ok',
    stage: () => ({ env: { LEASEHOLD_TOKEN: 'lh_something' } }),
  },
  {
    wrong: 'LEASEHOLD_TOKEN is no token',
    run: 'task list',
    exit: 4,
    says: 'error: LEASEHOLD_TOKEN is not a token…leasehold token create…',
    doctor: 'ok',
    stage: () => ({ env: { LEASEHOLD_TOKEN: 'two words' } }),
  },
  {
    wrong: 'Nothing is ready to be claimed',
    run: 'task claim',
    exit: 6,
    says: 'Nothing is ready. See why: leasehold task list, leasehold task explain ID',
    doctor: 'ok',
  },
  {
    wrong: 'Another agent holds the lock',
    run: 'lock acquire build --agent bob',
    exit: 5,
    says: 'error: build is held by amy since …--wait 30s…If you are amy: --agent amy',
    doctor: 'ok',
    stage: held,
  },
  {
    wrong: 'A fence that is not the latest',
    run: 'lock release build --agent amy --fence 99',
    exit: 5,
    says: 'error: Fence 99 of build is stale: the latest is 1, of amy…--fence 1',
    doctor: 'ok',
    stage: held,
  },
  {
    wrong: 'A task that is not there',
    run: 'task show 42',
    exit: 3,
    says: 'error: There is no task 42\n  next: See what there is: leasehold task list',
    doctor: 'ok',
  },
  {
    wrong: 'A command that is misspelt',
    run: 'lokc list',
    exit: 2,
    says: 'error: There is no command lokc: did you mean lock?…',
    doctor: 'ok',
  },
  {
    wrong: 'A backup that is not there',
    run: 'db restore gone.db',
    exit: 3,
    says: 'error: There is no backup at gone.db\n  next: Backups are made by: leasehold db backup',
    doctor: 'ok',
  },
  {
    wrong: 'A backup into a folder that is not there',
    run: 'db backup nowhere/b.db',
    exit: 3,
    says: 'error: There is no folder …nowhere for the backup\n  next: …mkdir -p …',
    doctor: 'ok',
    stage: (scene) => scene.used(),
  },
  {
    wrong: 'A branch is to be landed, and it is a task without a project',
    run: 'land 1',
    exit: 2,
    says: 'error: Task 1 has no project, so nothing says how it is landed\n  next: Give it one…',
    doctor: 'ok',
    stage: (scene) => scene.used(),
  },
]
