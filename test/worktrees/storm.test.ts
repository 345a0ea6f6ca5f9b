import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Looking } from '../faults/dispatch_crash.ts'
import { Random } from '../simulation/random.ts'
import * as landing from '../../src/operations/landings.ts'
import { list } from '../../src/operations/worktrees.ts'
import {
  argvOf,
  type Dispatching,
  dispatching,
  eventually,
  killAll,
} from '../support/dispatching.ts'
import { script, signal } from '../support/dispatching.ts'
import { type GitRepo, gitRepo } from '../support/git_repo.ts'
import { TEST_CLI } from '../support/processes.ts'
import type { Json } from '../doors/serving.ts'

const IS_LONG = process.env['FAULTS'] === 'long'
const RUNS = Number(process.env['RUNS'] ?? (IS_LONG ? 1000 : 6))
/** For bugs as coarse as the planted ones nobody has to be killed. */
const CALM = 8
const SEED = Number(process.env['SEED'] ?? 20)

/** Where programs of ours stop themselves, to be killed there; '': at any time. */
const STEPS = [
  ...Array.from({ length: 12 }, () => ''),
  ...['runner:spec', 'runner:gated', 'runner:started', 'runner:running', 'runner:exited'],
  ...['runner:left', 'worktree:begun', 'worktree:added', 'worktree:filled', 'worktree:copied'],
  ...['worktree:salvaging', 'worktree:salvaged', 'worktree:removing', 'worktree:aside'],
  ...['worktree:looked', 'worktree:cleared', 'worktree:unnamed'],
  ...['lander:taken', 'lander:proposed', 'lander:moved'],
]

/**
 * Writes lines, each different from every other, and after each tells the ledger, which is outside:
 * what stands there was written. Commits now and then, and never takes anything back. Many write to
 * files of their own, so that they can be landed; the others conflict, or leave things uncommitted.
 */
const AGENT = `begin
# By its start time: within a long storm numbers of processes come round again.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f1,20; }
while read -r pid start; do
  now=$(started "$pid")
  [ "\${now#[!ZX] }" = "$start" ] && wrong "port lent twice, to $pid too"
done < "$OUT/port-$LEASEHOLD_RESOURCE_PORTS" 2>/dev/null
now=$(started $$)
echo "$$ \${now#? }" >> "$OUT/port-$LEASEHOLD_RESOURCE_PORTS"
COMMIT='git -c user.name=x -c user.email=x@x commit -q -m More'
shared=a.txt
[ $(($LEASEHOLD_FENCE % 4)) = 1 ] || shared="a $LEASEHOLD_FENCE"
i=0
while [ $i -lt 8 ]; do
  i=$((i + 1))
  word="word-$LEASEHOLD_FENCE-$i-end"
  case $((($LEASEHOLD_FENCE + i) % 4)) in
    0) echo "$word" >> "$shared" ;;
    1) echo "$word" >> "new $LEASEHOLD_FENCE" ;;
    2) echo "$word" >> "ignored $LEASEHOLD_FENCE.log" ;;
    3) echo "$word" >> "staged $LEASEHOLD_FENCE"; git add "staged $LEASEHOLD_FENCE" ;;
  esac && echo "$word" >> "$OUT/ledger"
  [ $((($LEASEHOLD_FENCE + i) % 5)) = 0 ] && git add -A && $COMMIT
  sleep 0.02
done
[ $(($LEASEHOLD_FENCE % 7)) = 0 ] && : > "red $LEASEHOLD_FENCE"
[ $(($LEASEHOLD_FENCE % 5)) != 0 ] && git add -A && $COMMIT
if [ $(($LEASEHOLD_FENCE % 6)) = 0 ]; then
  git checkout -q --detach && date > late && git add late && $COMMIT
fi
[ $(($LEASEHOLD_FENCE % 4)) != 0 ] && finish`

const CONFIG = {
  runs: { ttl_seconds: 5, grace_seconds: 0.2 },
  slots: { max: 6 },
  resources: { ports: '5100-5104' },
  agents: { worker: script(AGENT) },
}

/** Notes which commit it was shown and what it says of it, for who judges the target. */
const CHECK = `at=$(git rev-parse HEAD); ls | grep -q ^red && what=red || what=green
echo "$at $what" >> "$1"; test $what = green`

/** All bytes that a ref leads to, and those of files in worktrees that are there. */
function reachable(repo: GitRepo, trees: Json[]): string {
  const objects = repo.git('rev-list', '--objects', '--all').split('\n')
  const ids = objects.map((line) => line.split(' ')[0]).join('\n')
  const batch = ['cat-file', '--batch', '--buffer']
  const kept = execFileSync('git', batch, { cwd: repo.top, input: ids, maxBuffer: 2 ** 30 })
  const files = trees
    .filter(({ path }) => existsSync(path))
    .flatMap(({ path }) => {
      const names = readdirSync(path, { recursive: true, withFileTypes: true })
      const found = names
        .filter((each) => each.isFile())
        .map((each) => join(each.parentPath, each.name))
      return found.map((each) => readFileSync(each, 'utf8'))
    })
  return [String(kept), ...files].join('\n')
}

/** What is on disk or among refs, and no row of a worktree tells of. */
function leftBehind(repo: GitRepo, folder: string, trees: Json[]): string[] {
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

async function landingsOf(look: Looking): Promise<Json[]> {
  const found: Json[] = []
  for (let after: string | null = null; ;) {
    const page = await look.ask(landing.list, { limit: 1000, ...(after !== null && { after }) })
    found.push(...page.items)
    if ((after = page.next) === null) return found
  }
}

/** What is wrong with the target, or with what is said of it; and how many were landed. */
async function judged(look: Looking, repo: GitRepo, landings: Json[], checks: string) {
  const amiss: string[] = []
  const green = new Set(
    checks.split('\n').flatMap((line) => line.match(/^(\w+) green$/)?.[1] ?? []),
  )
  const states = repo.git('reflog', '--format=%H', 'refs/heads/main').split('\n')
  const moved = states.slice(0, states.indexOf(repo.head(':/Ignore')))
  for (const state of moved) {
    if (!green.has(state)) amiss.push(`${state} was on main, and not checked`)
    if (/^red/m.test(repo.git('ls-tree', '--name-only', state))) amiss.push(`${state} is red`)
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
  const dirty = repo.git('status', '--porcelain')
  if (dirty !== '') amiss.push(`the checkout did not follow: ${dirty}`)
  return {
    amiss,
    landed: landed.length,
    returned: landings.length - landed.length,
    moves: moved.length,
  }
}

/** One of ours, by chance: an agent's command, a runner, a keeper or the daemon. */
function victim(all: Dispatching, random: Random): number[] {
  const isOf = (program: string) => all.processes().filter((pid) => argvOf(pid).includes(program))
  // A git of ours is killed with who started it, never alone: see docs/worktrees.md.
  const isOurs = (pid: number) => /runner\.cjs|keeper\.cjs|core\.hooksPath/.test(argvOf(pid))
  const chance = random.below(12)
  if (chance < 5)
    return random.some(
      all.agents().filter((pid) => !isOurs(pid)),
      1,
    )
  if (chance < 9) return random.some(isOf('runner.cjs'), 1)
  return chance < 11 ? random.some(isOf('keeper.cjs'), 1) : [all.daemon.running.pid]
}

/** Until some more have begun, or stopped: on a busy machine all would be killed before that. */
async function goesOn(all: Dispatching, random: Random): Promise<void> {
  const enough = all.lines('start').length + random.below(4)
  const isEnough = () => all.stopped().length > 0 || all.lines('start').length >= enough
  await eventually('they begin', isEnough, 4_000).catch(() => undefined)
  // reason: what is under way then is to be killed anywhere, and nothing tells of that
  await new Promise((later) => void setTimeout(later, random.below(200)))
}

async function storm(all: Dispatching, look: Looking, enough: number) {
  const random = new Random(SEED)
  let tasks = 0
  const kills = { agents: 0, runners: 0, keepers: 0, daemons: 0 }
  const count = async (type: string) => (await look.events(type)).length
  while ((await count('task.claimed')) < enough) {
    const step = random.pick(STEPS)
    await all.serve({ LEASEHOLD_STOP_AT: step }, TEST_CLI)
    for (let i = 0; i < 20; i += 1) {
      const { pending } = await look.status()
      for (let n = pending.total; n < 8; n += 1) {
        await look.add(`t-${(tasks += 1)}`, `u${tasks % 10}`, { retries: random.below(3) })
      }
      await goesOn(all, random)
      // Killed where they stopped; and, when nobody stops, at any time.
      const stopped = all.stopped()
      const doomed = stopped.length > 0 ? stopped : victim(all, random)
      for (const pid of doomed) {
        kills[kindOf(pid)] += 1
        signal(pid, 'SIGKILL')
      }
      if (doomed.includes(all.daemon.running.pid)) break
    }
    kills.daemons += 1
    await killAll([all.daemon.running.pid])
  }
  const [runs, begun] = [await count('task.claimed'), await count('run.started')]
  return { kills, tasks, runs, begun }
}

function kindOf(pid: number): 'agents' | 'runners' | 'keepers' | 'daemons' {
  const argv = argvOf(pid)
  if (argv.includes('runner.cjs')) return 'runners'
  if (argv.includes('keeper.cjs')) return 'keepers'
  return argv.includes(TEST_CLI) ? 'daemons' : 'agents'
}

async function play(enough: number, plant?: string) {
  const all = dispatching()
  const repo = gitRepo(all.place.path('repo'), { 'a.txt': 'one\n' })
  repo.commit('Ignore', { '.gitignore': '.leasehold/\n*.log\n' })
  const folder = all.place.path('trees')
  // Whatever is safe goes at once, so that removal is at work all the time.
  const worktrees = { keep: { days: 0 }, retry: SEED % 2 ? 'new' : 'same', folder }
  const checks = join(all.out, 'checks')
  const land = { onto: 'main', check: ['/bin/sh', '-c', CHECK, 'check', checks], auto: true }
  const web = { agent: 'worker', path: repo.top, worktrees, land, resources: ['ports'] }
  all.configure({ ...CONFIG, projects: { web } })
  const look = new Looking(all)
  try {
    const played = plant === undefined ? await storm(all, look, enough) : {}
    await all.serve(plant === undefined ? {} : { LEASEHOLD_PLANT: plant }, TEST_CLI)
    for (let i = 0; plant !== undefined && i < enough; i += 1) await look.add(`p-${i}`, `u${i}`)
    let trees: Json[] = []
    let landings: Json[] = []
    const atRest = async () => {
      // Who stopped itself at a step keeps others out of the repository for as long as it lives.
      for (const pid of all.stopped()) signal(pid, 'SIGKILL')
      const { pending, active } = await look.status()
      trees = (await look.ask(list, { limit: 1000 })).items
      const isAtRest = trees.every(({ state, is_over }) => state === 'left' && is_over)
      landings = await landingsOf(look)
      const isLanded = landings.every(({ ended_at }) => ended_at !== null)
      return pending.total + active.slots_used === 0 && isAtRest && isLanded
    }
    await eventually('all is at rest', atRest, 240_000).catch((error: Error) => {
      const states = trees.map(({ id, state, is_over }) => `${id} ${state} ${is_over}`)
      throw new Error(`${error.message}: ${states.join(', ')}; ${all.daemon.running.err}`)
    })
    // A lander that ends in peace takes its tree with it.
    await all.daemon.stop()
    if (plant === 'R54') {
      // What may go goes when a dispatcher begins.
      await all.serve({ LEASEHOLD_PLANT: plant }, TEST_CLI)
      await eventually('all are removed', async () => (await atRest()) && trees.length === 0)
      await killAll([all.daemon.running.pid])
    }
    const alive = () => all.processes().map((pid) => `${pid} ${argvOf(pid)}`)
    await eventually('all are gone', () => alive().length === 0, 60_000).catch((error: Error) => {
      throw new Error(`${error.message}: ${alive().join(', ')}`)
    })
    const words = all.read('ledger').split('\n').filter(Boolean)
    const kept = reachable(repo, trees)
    const lost = words.filter((word) => !kept.includes(`${word}\n`))
    return {
      ...played,
      words: words.length,
      lost,
      wrong: all.wrong(),
      left: leftBehind(repo, folder, trees),
      kept: trees.length,
      ...(await judged(look, repo, landings, all.read('checks'))),
    }
  } finally {
    await look.close()
  }
}

test(`${RUNS} runs, killed anywhere: nothing is lost or left over (seed ${SEED})`, async () => {
  const { lost, wrong, left, amiss, ...played } = await play(RUNS)
  console.log(`worktrees: ${JSON.stringify(played)}`)
  expect({ lost, wrong, left, amiss }).toEqual({ lost: [], wrong: [], left: [], amiss: [] })
  expect(played.words).toBeGreaterThan(0)
}, 3600_000)

test.each([
  ['R54', 'lost'],
  ['R54 lent', 'wrong'],
] as const)(
  'a planted %s is noticed',
  async (bug, by) => {
    const played = await play(CALM, bug)
    expect(played[by].length).toBeGreaterThan(0)
  },
  3600_000,
)
