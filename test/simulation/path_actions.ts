import { admits } from '../../src/core/caller.ts'
import { oracleOf } from '../support/glob_oracle.ts'
import { PathVerbs } from '../support/path_verbs.ts'
import type { Refusal } from '../../src/core/refusal.ts'
import type { Action } from './actions.ts'
import { mustHold } from './broken.ts'
import { PATHS } from './path_rows.ts'
import { type SimAgent, TTLS_MS, type World } from './world.ts'

const GLOBS = [
  ...['**', 'a/**', 'b/**', 'a/*', '*/b', 'a/{b,c}', '[ab]/c', 'b/?', 'a/b', 'a/b/c', 'c', 'b/a'],
  ...['**/c', 'b/**/c', '{a,b/*}/c', '[!a]', 'a/[!b]/*', 'c/', 'c/a', 'c/b/a'],
]

/** Checkouts of one project; now and then all of them at once. */
const CHECKOUTS = ['/one', '/one', '/one', '/two', null]

const verbsOf = (world: World) => new PathVerbs(world.stores[world.writer]!)

function whereOf({ chance: random }: World) {
  return { checkout: random.pick(CHECKOUTS), repository: '/one/.git' }
}

/** R27: a refusal names a reservation that has a path in common with what was asked for. */
function judgeRefusal(asked: string[], { code, details }: Refusal): void {
  if (code !== 'held') return
  const theirs = oracleOf(String(details['reserved']))
  const shown = asked.some((glob) => PATHS.filter(oracleOf(glob)).some(theirs))
  mustHold('R27', shown, () => `${asked.join()} was refused for ${String(details['reserved'])}`)
}

/** A touch is a sign of life: it may have renewed all that the agent and its parents hold. */
function mayBeAlive(world: World, agent: SimAgent, ttl_ms: number): void {
  for (const [lock, last] of world.history.locks) {
    if (!admits(last.holder, agent.id)) continue
    const least_ms = lock.startsWith('path:') ? Math.min(ttl_ms, last.ttl_min) : last.ttl_max
    world.reports.renewed.push({ lock, fence: last.fence, ttl_ms: least_ms, known: false })
  }
}

/** They may have been renewed, for this time or the one they had; the shorter one is certain. */
function mayBeRenewed(world: World, agent: SimAgent, ttl_ms: number): void {
  for (const [lock, last] of world.history.locks) {
    if (!lock.startsWith('path:') || last.holder !== agent.id) continue
    const least_ms = Math.min(ttl_ms, last.ttl_min)
    world.reports.renewed.push({ lock, fence: last.fence, ttl_ms: least_ms, known: false })
  }
}

async function reserve(world: World, agent: SimAgent): Promise<void> {
  const { chance: random } = world
  const globs = random.some(GLOBS, random.pick([1, 1, 2, 3]))
  const { process } = agent
  const ttl_ms = random.pick(TTLS_MS)
  const options = { ...whereOf(world), shared: random.chance(0.4), process, ttl_ms }
  const asked = verbsOf(world).reserve(globs, world.callerOf(agent), options)
  const got = await world.outcomeOf('reserve', asked)
  if (got.kind === 'refused') judgeRefusal(globs, got.refusal)
  if (got.kind === 'unknown') mayBeRenewed(world, agent, ttl_ms)
  if (got.kind !== 'ok') return
  // All or nothing: every one that was asked for is there.
  mustHold('S5', got.value.leases.length === new Set(globs).size, () => `some of ${globs.join()}`)
  for (const { name: lock, fence } of got.value.leases) {
    world.reports.renewed.push({ lock, fence, ttl_ms, known: true })
  }
}

async function touch(world: World, agent: SimAgent): Promise<void> {
  const { chance: random } = world
  const paths = random.some(PATHS, random.below(3))
  const { process } = agent
  const ttl_ms = random.pick(TTLS_MS)
  const mode = random.pick(['auto', 'auto', 'auto', 'strict', 'warn'] as const)
  const options = { ...whereOf(world), mode, process, ttl_ms }
  const asked = verbsOf(world).touch(paths, world.callerOf(agent), options)
  const got = await world.outcomeOf('touch', asked)
  if (got.kind === 'refused') judgeRefusal(paths, got.refusal)
  if (got.kind === 'ok' || got.kind === 'unknown') mayBeAlive(world, agent, ttl_ms)
}

async function releasePaths(world: World, agent: SimAgent): Promise<void> {
  const { chance: random } = world
  const caller = world.callerOf(agent)
  const { checkout } = whereOf(world)
  const { process } = agent
  const asked = random.chance(0.3)
    ? verbsOf(world).releaseAll(caller, { checkout, process, nested: random.chance(0.5) })
    : verbsOf(world).release(random.pick(GLOBS), caller, { checkout, process })
  const got = await world.outcomeOf('releasePaths', asked)
  if (got.kind !== 'ok') return
  for (const { holder, path } of got.value) {
    const whose = `${agent.id} released ${path?.glob} of ${holder}`
    mustHold('S2', `${holder}/`.startsWith(`${agent.id}/`), () => whose)
  }
}

export const PATH_ACTIONS: [number, Action][] = [
  [5, reserve],
  [4, touch],
  [2, releasePaths],
]
