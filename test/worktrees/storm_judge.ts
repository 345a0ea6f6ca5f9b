import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from '../doors/serving.ts'
import type { Looking } from '../faults/dispatch_crash.ts'
import * as landing from '../../src/operations/landings.ts'
import type { GitRepo } from '../support/git_repo.ts'
import { PERSON } from './storm_person.ts'

/** All bytes that a ref leads to, and those of files in checkouts that are there. */
export function reachable(repo: GitRepo, folder: string): string {
  const objects = repo.git('rev-list', '--objects', '--all').split('\n')
  const ids = objects.map((line) => line.split(' ')[0]).join('\n')
  const batch = ['cat-file', '--batch', '--buffer']
  const kept = execFileSync('git', batch, { cwd: repo.top, input: ids, maxBuffer: 2 ** 30 })
  const here = readdirSync(repo.top, { withFileTypes: true })
  const below = existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
    : []
  const files = [...here, ...below]
    .filter((each) => each.isFile())
    .map((each) => readFileSync(join(each.parentPath, each.name), 'utf8'))
  return [String(kept), ...files].join('\n')
}

/** What is on disk or among refs, and no row of a worktree tells of. */
export function leftBehind(repo: GitRepo, folder: string, trees: Json[]): string[] {
  const paths = new Set(trees.map(({ path }) => path))
  const names = new Set(trees.map(({ path }) => path.split('/').at(-1)))
  const branches = new Set(trees.map(({ branch }) => `refs/heads/${branch}`))
  const admin = join(repo.top, '.git/worktrees')
  const there = existsSync(folder) ? readdirSync(folder) : []
  const git = readdirSync(join(repo.top, '.git'), { recursive: true, encoding: 'utf8' })
  return [
    ...there.filter((name) => !paths.has(join(folder, name))).map((name) => `folder ${name}`),
    ...(existsSync(admin) ? readdirSync(admin) : []).filter((name) => !names.has(name)),
    ...Object.keys(repo.refs('refs/heads/leasehold')).filter((ref) => !branches.has(ref)),
    ...git.filter((name) => name.endsWith('.lock')),
  ]
}

export async function landingsOf(look: Looking): Promise<Json[]> {
  const found: Json[] = []
  for (let after: string | null = null; ;) {
    const page = await look.ask(landing.list, { limit: 1000, ...(after !== null && { after }) })
    found.push(...page.items)
    if ((after = page.next) === null) return found
  }
}

interface Played {
  look: Looking
  repo: GitRepo
  landings: Json[]
  checks: string
  /** Whether a person was at work in the checkout of the target. */
  hasPerson: boolean
}

/** What is wrong with the target, or with what is said of it; and how many were landed. */
export async function judged({ look, repo, landings, checks, hasPerson }: Played) {
  const amiss: string[] = []
  const green = new Set(
    checks.split('\n').flatMap((line) => line.match(/^(\w+) green$/)?.[1] ?? []),
  )
  const states = repo.git('reflog', '--format=%H', 'refs/heads/main').split('\n')
  const moved = states.slice(0, states.indexOf(repo.head(':/Ignore')))
  for (const state of moved) {
    const isPersons = hasPerson && repo.git('log', '-1', '--format=%s', state) === PERSON
    if (!green.has(state) && !isPersons) amiss.push(`${state} was on main, and not checked`)
    const names = repo.git('ls-tree', '--name-only', state)
    if (/^red/m.test(names)) amiss.push(`${state} is red`)
    if (/^n{300}/m.test(names)) amiss.push(`${state} has a file that no disk can have`)
  }
  const onMain = new Set(repo.git('rev-list', 'main').split('\n'))
  const landed = landings.filter(({ status }) => status === 'landed')
  for (const { id, task_id, candidate } of landed) {
    const { status, metadata } = await look.task(task_id)
    const proof = (metadata as Json).proof
    if (!onMain.has(candidate)) amiss.push(`${id} is landed, and not on main`)
    if (status !== 'done' || proof?.landing !== id)
      amiss.push(`${id} is landed, ${task_id} ${status}`)
  }
  const done = new Set(landed.map(({ task_id }) => task_id))
  if (done.size !== landed.length) amiss.push('a task was landed twice')
  // It fails where it finds nothing: before anything has landed there are no words.
  const said = moved.length === 0 ? '' : repo.git('grep', '-h', 'word-', 'main')
  const lines = said.split('\n').toSorted()
  const twice = lines.filter((line, i) => line === lines[i - 1])
  if (twice.length > 0) amiss.push(`on main twice: ${twice.join(', ')}`)
  // Nobody here takes anything back: what was ever added is there, or somebody reverted it.
  const added = repo.git('log', '-p', '--format=', '--no-merges', 'main').match(/^\+word-.*$/gm)
  const reverted = (added ?? []).filter((line) => !lines.includes(line.slice(1)))
  if (reverted.length > 0) amiss.push(`reverted on main: ${reverted.join(', ')}`)
  const dirty = hasPerson ? '' : repo.git('status', '--porcelain')
  if (dirty !== '') amiss.push(`the checkout did not follow: ${dirty}`)
  return {
    amiss,
    landed: landed.length,
    returned: landings.length - landed.length,
    bad: landings.filter(({ reason }) => /File name too long/.test(reason ?? '')).length,
    moves: moved.length,
  }
}
