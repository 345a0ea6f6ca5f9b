import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Client } from '../../../client/client.ts'
import type { ShownEvent } from '../../../core/event.ts'
import type { Status } from '../../../core/rows.ts'
import { readMeta } from '../../../daemon/runner/run_folder.ts'
import { processRef } from '../../../machine/process.ts'
import { plainEnvironment } from './half.ts'
import type { Picture } from './picture.ts'
import { git, linesIn, makeRepository } from './repository.ts'
import { BRANCH_TASKS, lineOf } from './words.ts'

/** What became of the branches. */
export interface Branches {
  landed: number
  came_back: number
  /** Why, in the words of the lander. */
  reasons: string[]
  lines_lost: number
}

const PROJECT = 'shop'
const OVER = new Set<Status>(['done', 'failed', 'cancelled'])
/** Long enough for a slow machine; what takes longer is broken. */
const PATIENCE_MS = 60_000
const LOOK_AGAIN_MS = 100

/** A repository whose runs have worktrees, and land on `main`. Null where there is no git. */
export function makeShop(folder: string): { state: string; repository: string } | null {
  const repository = join(folder, 'branches')
  mkdirSync(repository)
  makeRepository(repository)
  if (!git(repository, 'branch', '--move', '--force', 'main')) return null
  const program = fileURLToPath(new URL('demo_branch.cjs', import.meta.url))
  // Passes where no mark of a conflict was left behind.
  const land = { onto: 'main', check: ['git', 'diff', '--check', 'HEAD~1'], auto: true }
  const config = {
    agents: { adder: { command: [process.execPath, program] } },
    projects: { [PROJECT]: { path: repository, agent: 'adder', worktrees: true, land } },
  }
  const state = join(folder, 'branches-state')
  mkdirSync(state, { mode: 0o700 })
  writeFileSync(join(state, 'config.json'), JSON.stringify(config), { mode: 0o600 })
  return { state, repository }
}

/** Programs of ours are named in it, in a folder of ours: nobody has to approve them. */
export function useOwnEnvironment(): void {
  const plain = plainEnvironment()
  for (const name of Object.keys(process.env)) if (!(name in plain)) delete process.env[name]
  process.env['LEASEHOLD_TRUST_CONFIG'] = 'yes'
}

/**
 * Runs all tasks at once, and tells what lands and what comes back. Interrupted, it waits for them
 * all the same: that takes seconds, and then nothing of theirs is left.
 */
export async function landAll(
  client: Client,
  repository: string,
  { picture, signal }: { picture: Picture; signal: AbortSignal },
): Promise<Branches> {
  const told: Branches = { landed: 0, came_back: 0, reasons: [], lines_lost: 0 }
  const over = new Set<string>()
  const stream = client.events({ signal: AbortSignal.timeout(PATIENCE_MS) })
  await stream.opened
  try {
    for (const { id, file } of BRANCH_TASKS) {
      await client.queue.add({ id, prompt: file, project: PROJECT, user: id, retries: 1 })
    }
    for await (const { event } of stream) {
      if (event) count(event, told, over)
      const says = event && storyOf(event)
      if (says) picture.say(says)
      if (over.size === BRANCH_TASKS.length) break
    }
  } finally {
    await stopAll(client)
  }
  signal.throwIfAborted()
  const lines = linesIn(repository)
  told.lines_lost = BRANCH_TASKS.filter(({ id }) => !lines.has(lineOf(id))).length
  return told
}

/** One that takes too long leaves no agent behind either. */
async function stopAll(client: Client): Promise<void> {
  for (const { id } of BRANCH_TASKS) await client.queue.cancel({ id }).catch(() => undefined)
  while ((await client.queue.status()).active.slots_used > 0) {
    await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS))
  }
}

/** A runner writes its last word when it has told how its run ended; then it is gone. */
export async function runnersGone(state: string): Promise<void> {
  const runs = join(state, 'runs')
  const isThere = (name: string) => {
    const meta = readMeta(join(runs, name))
    return meta !== undefined && processRef(meta.runner_pid)?.start === meta.runner_start
  }
  const until_ms = performance.now() + PATIENCE_MS
  while (existsSync(runs) && readdirSync(runs).some(isThere) && performance.now() < until_ms) {
    await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS))
  }
}

function count(event: ShownEvent, told: Branches, over: Set<string>): void {
  const { type, task, data } = event
  if (type === 'landing.landed') told.landed += 1
  if (type === 'landing.returned') {
    told.came_back += 1
    told.reasons.push(data.reason)
  }
  if (type === 'task.moved' && OVER.has(data.to)) over.add(task ?? '')
}

function storyOf({ type, task, data }: ShownEvent): string | undefined {
  const what = (says: string) => `  ${(task ?? '').padEnd(6)} ${says}`
  if (type === 'worktree.made') return what(`works on ${data.branch}, in a folder of its own`)
  if (type === 'landing.landed') return what(`landed: main is ${data.commit.slice(0, 7)} now`)
  if (type === 'landing.returned') return what(`came back: ${data.reason}`)
  return undefined
}
