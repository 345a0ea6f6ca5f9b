import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Looking } from '../faults/dispatch_crash.ts'
import { Random } from '../simulation/random.ts'
import { list } from '../../src/operations/worktrees.ts'
import { argvOf, type Dispatching, dispatching, killAll } from '../support/dispatching.ts'
import { script, signal } from '../support/dispatching.ts'
import { type GitRepo, gitRepo } from '../support/git_repo.ts'
import { TEST_CLI, until } from '../support/processes.ts'
import { type Json, startDaemon } from '../doors/serving.ts'
import { judged, landingsOf, leftBehind, reachable } from './storm_judge.ts'
import { Person } from './storm_person.ts'

const IS_LONG = process.env['FAULTS'] === 'long'
const RUNS = Number(process.env['RUNS'] ?? (IS_LONG ? 1000 : 6))
/** For bugs as coarse as the planted ones nobody has to be killed. */
const CALM = 6
const SEED = Number(process.env['SEED'] ?? 20)

/**
 * What happens besides: two `stores` on one repository; `restores` of the last of them; a `person`
 * at work in the main checkout; a host name that changes (`hosts`, wants root); branches that git
 * cannot stack (`bad`).
 */
const PARTS = new Set((process.env['STORM'] ?? (IS_LONG ? 'stores,restores' : '')).split(','))

/** Where programs of ours stop themselves, to be killed there; '': at any time. */
const STEPS = [
  ...Array.from({ length: 12 }, () => ''),
  ...['runner:spec', 'runner:gated', 'runner:started', 'runner:running', 'runner:exited'],
  ...['runner:left', 'worktree:begun', 'worktree:added', 'worktree:filled', 'worktree:copied'],
  ...[
    'worktree:claimed',
    'worktree:salvaging',
    'worktree:salvaged',
    'worktree:removing',
    'worktree:aside',
  ],
  ...['worktree:looked', 'worktree:cleared', 'worktree:unnamed'],
  ...['lander:taken', 'lander:proposed', 'lander:moved'],
]

/**
 * Writes lines, each different from every other, and after each tells the ledger, which is outside:
 * what stands there was written. Commits now and then, and never takes anything back. Many write to
 * files of their own, so that they can be landed; the others conflict, or leave things uncommitted.
 * The first waits for a second one: on a busy machine they would come one after the other, and two
 * would never have the same port.
 */
const AGENT = `begin
while read -r pid start; do
  now=$(started "$pid")
  [ "\${now#[!ZX] }" = "$start" ] && wrong "port lent twice, to $pid too"
done < "$OUT/port-$LEASEHOLD_RESOURCE_PORTS" 2>/dev/null
now=$(started $$)
echo "$$ \${now#? }" >> "$OUT/port-$LEASEHOLD_RESOURCE_PORTS"
until [ "$(cat "$OUT"/port-* | wc -l)" -gt 1 ]; do sleep 0.02; done
COMMIT='git -c user.name=x -c user.email=x@x commit -q -m More'
shared=a.txt
[ $(($LEASEHOLD_FENCE % 4)) = 1 ] || shared="a $LEASEHOLD_FENCE"
i=0
while [ $i -lt 8 ]; do
  i=$((i + 1))
  word="word-$STORE$LEASEHOLD_FENCE-$i-end"
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
[ "$BAD" = yes ] && [ $(($LEASEHOLD_FENCE % 9)) = 4 ] && git add -A &&
case $(($LEASEHOLD_FENCE % 2)) in
  0) git update-ref HEAD "$(git commit-tree "$(git write-tree)" -m Orphan)" ;;
  *) name=$(printf 'n%.0s' $(seq 300)) && : | git hash-object -w --stdin |
    { read -r id && git update-index --add --cacheinfo "100644,$id,$name"; } &&
    git update-index --skip-worktree "$name" && $COMMIT ;;
esac
[ $(($LEASEHOLD_FENCE % 4)) != 0 ] && finish`

const CONFIG = {
  runs: { ttl_seconds: 5, grace_seconds: 0.2 },
  slots: { max: 6 },
  resources: { ports: '5100-5104' },
}

/** Notes which commit it was shown and what it says of it, for who judges the target. */
const CHECK = `at=$(git rev-parse HEAD); ls | grep -q ^red && what=red || what=green
echo "$at $what" >> "$1"; test $what = green`

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
  await until('they begin', isEnough, 4_000).catch(() => undefined)
  // reason: what is under way then is to be killed anywhere, and nothing tells of that
  await new Promise((later) => void setTimeout(later, random.below(200)))
}

/** A store with a dispatcher of its own; its first tasks have the numbers that the other's have. */
interface Side {
  all: Dispatching
  look: Looking
  tasks: number
  backup?: string
}

const count = async ({ look }: Side, type: string) => (await look.events(type)).length

async function storm(sides: Side[], repo: GitRepo, enough: number) {
  const random = new Random(SEED)
  const kills = { agents: 0, runners: 0, keepers: 0, daemons: 0 }
  const restores = { done: 0, held: 0 }
  const [first, last] = [sides[0]!, sides.at(-1)!]
  const person = new Person(repo, join(first.all.out, 'ledger'), random)
  while ((await count(first, 'task.claimed')) < enough) {
    const step = random.pick(STEPS)
    const name = PARTS.has('hosts') ? `host${random.below(2)}` : undefined
    for (const { all } of sides) await serve(all, { LEASEHOLD_STOP_AT: step }, name)
    let goes = true
    for (let i = 0; i < 20 && goes; i += 1) {
      for (const side of sides) await fill(side, random)
      await goesOn(first.all, random)
      if (PARTS.has('person')) person.act()
      for (const { all } of sides) {
        // Killed where they stopped; and, when nobody stops, at any time.
        const stopped = all.stopped()
        const doomed = stopped.length > 0 ? stopped : victim(all, random)
        for (const pid of doomed) {
          kills[kindOf(pid)] += 1
          signal(pid, 'SIGKILL')
        }
        if (doomed.includes(all.daemon.running.pid)) goes = false
      }
    }
    kills.daemons += sides.length
    await killAll(sides.map(({ all }) => all.daemon.running.pid))
    if (PARTS.has('restores')) restores[await restore(last, random)] += 1
  }
  if (PARTS.has('person')) await until('the person is through', () => person.rest())
  const [runs, begun] = [await count(first, 'task.claimed'), await count(first, 'run.started')]
  const { hindered } = person
  return { kills, restores, hindered, tasks: first.tasks, runs, begun }
}

async function fill(side: Side, random: Random): Promise<void> {
  const { pending } = await side.look.status()
  for (let n = pending.total; n < 8; n += 1) {
    side.tasks += 1
    await side.look.add(`t-${side.tasks}`, `u${side.tasks % 10}`, { retries: random.below(3) })
  }
}

/** Under a host name of its own, where the machine lets us. */
async function serve(all: Dispatching, env: Record<string, string>, name?: string) {
  if (name === undefined) return all.serve(env, TEST_CLI)
  const renamed = ['unshare', '--uts', 'sh', '-c', 'hostname "$0"; exec "$@"', name]
  all.daemon = await startDaemon(all.place, {
    program: [...renamed, process.execPath, TEST_CLI],
    env,
  })
  return all.daemon
}

/**
 * Sets a store back, its daemon gone: to this moment, with commands at work; or to an earlier one,
 * of which no command may be left.
 */
async function restore(side: Side, random: Random): Promise<'done' | 'held'> {
  const { place } = side.all
  const isNow = side.backup === undefined || random.below(2) === 0
  if (isNow) {
    side.backup = place.path(`${side.tasks}-${random.below(1_000_000)}.db`)
    await place.ok(['db', 'backup', side.backup])
  } else await killAll(side.all.processes())
  const args = ['--json', 'db', 'restore', side.backup!, '--yes']
  const { code, err } = await place.cli(args)
  if (code === 5 && isNow) return 'held'
  if (code !== 0) throw new Error(`the restore failed: ${err}`)
  return 'done'
}

function kindOf(pid: number): 'agents' | 'runners' | 'keepers' | 'daemons' {
  const argv = argvOf(pid)
  if (argv.includes('runner.cjs')) return 'runners'
  if (argv.includes('keeper.cjs')) return 'keepers'
  return argv.includes(TEST_CLI) ? 'daemons' : 'agents'
}

/** The second store lands nothing: a target is one store's. */
function configure(all: Dispatching, repo: GitRepo, folder: string, store: string): void {
  // Whatever is safe goes at once, so that removal is at work all the time.
  const worktrees = { keep: { days: 0 }, retry: SEED % 2 ? 'new' : 'same', folder }
  const checks = join(all.out, 'checks')
  const check = ['/bin/sh', '-c', CHECK, 'check', checks]
  const land = store === '' ? { land: { onto: 'main', check, auto: true } } : {}
  const web = { agent: 'worker', path: repo.top, worktrees, resources: ['ports'], ...land }
  const agents = {
    worker: script(AGENT, { env: { STORE: store, BAD: PARTS.has('bad') ? 'yes' : '' } }),
  }
  all.configure({ ...CONFIG, agents, projects: { web } })
}

interface AtRest {
  trees: Json[]
  landings: Json[]
}

async function atRest({ all, look }: Side): Promise<AtRest | null> {
  // Who stopped itself at a step keeps others out of the repository for as long as it lives.
  for (const pid of all.stopped()) signal(pid, 'SIGKILL')
  const { pending, active } = await look.status()
  const trees: Json[] = (await look.ask(list, { limit: 1000 })).items
  const isAtRest = trees.every(({ state, is_over }) => state === 'left' && is_over)
  const landings = await landingsOf(look)
  const isLanded = landings.every(({ ended_at }) => ended_at !== null)
  const isDone = pending.total + active.slots_used === 0 && isAtRest && isLanded
  return isDone ? { trees, landings } : null
}

/** Waits until all is at rest and nothing of the side runs any more. */
async function settle(side: Side, plant?: string) {
  const { all, look } = side
  const rested = () =>
    until<AtRest | null>('all is at rest', () => atRest(side), 240_000).catch(
      async (error: Error) => {
        const { items } = await look.ask(list, { limit: 1000 })
        const states = items.map(({ id, state, is_over }: Json) => `${id} ${state} ${is_over}`)
        const runs = all.processes().map((pid) => `${pid} ${argvOf(pid).slice(0, 200)}`)
        const open = (await landingsOf(look)).filter(({ ended_at }) => ended_at === null)
        const told = [...states, ...runs, JSON.stringify(open), all.daemon.running.err]
        throw new Error(`${error.message}: ${told.join('\n')}`)
      },
    )
  let found = await rested()
  // A lander that ends in peace takes its tree with it.
  await all.daemon.stop()
  if (plant === 'R54') {
    // What may go goes when a dispatcher begins.
    await all.serve({ LEASEHOLD_PLANT: plant }, TEST_CLI)
    const isEmpty = async () => (found = await rested()).trees.length === 0
    await until('all are removed', isEmpty)
    await killAll([all.daemon.running.pid])
  }
  const alive = () => all.processes().map((pid) => `${pid} ${argvOf(pid)}`)
  await until('all are gone', () => alive().length === 0, 60_000).catch((error: Error) => {
    throw new Error(`${error.message}: ${alive().join(', ')}`)
  })
  return found
}

async function play(enough: number, plant?: string) {
  const has = (part: string) => plant === undefined && PARTS.has(part)
  const places = Array.from({ length: has('stores') ? 2 : 1 }, () => dispatching())
  const [first] = places as [Dispatching]
  const repo = gitRepo(first.place.path('repo'), { 'a.txt': 'one\n' })
  repo.commit('Ignore', { '.gitignore': '.leasehold/\n*.log\n' })
  const folder = first.place.path('trees')
  places.forEach((all, i) => configure(all, repo, folder, ['', 'b'][i]!))
  const sides: Side[] = places.map((all) => ({ all, look: new Looking(all), tasks: 0 }))
  const { look } = sides[0]!
  try {
    const played = plant === undefined ? await storm(sides, repo, enough) : {}
    const env: Record<string, string> = plant === undefined ? {} : { LEASEHOLD_PLANT: plant }
    for (const { all } of sides) await all.serve(env, TEST_CLI)
    for (let i = 0; plant !== undefined && i < enough; i += 1) await look.add(`p-${i}`, `u${i}`)
    const found = []
    for (const side of sides) found.push(await settle(side, plant))
    const words = places.flatMap((all) => all.read('ledger').split('\n').filter(Boolean))
    const kept = reachable(repo, folder)
    const trees = found.flatMap((each) => each.trees)
    const behind = leftBehind(repo, folder, trees)
    const { landings } = found[0]!
    const checks = first.read('checks')
    const verdict = await judged({ look, repo, landings, checks, hasPerson: has('person') })
    return {
      ...played,
      words: words.length,
      lost: words.filter((word) => !kept.includes(`${word}\n`)),
      wrong: places.flatMap((all) => all.wrong()),
      // Of what was made after a backup the store that was set back to it knows nothing: it stays.
      left: has('restores') ? [] : behind,
      orphans: behind.length,
      kept: trees.length,
      ...verdict,
    }
  } finally {
    for (const side of sides) await side.look.close()
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
