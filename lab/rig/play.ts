import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { Random } from '../../test/simulation/random.ts'
import { AIMED, tryCase } from './cases.ts'
import type { Counts } from './counts.ts'
import { damageCases, tryDamage } from './damaging.ts'
import { nowMs } from './history.ts'
import { World, type WorldPlan } from './world.ts'
import { wreak } from './faults.ts'

type Shape = Pick<WorldPlan, 'kind' | 'disk'> & { name: string }

const SHAPES: Shape[] = [
  { name: 'sqlite', kind: 'sqlite' },
  { name: 'postgres', kind: 'postgres' },
  { name: 'sqlite-power', kind: 'sqlite', disk: 'journaled' },
  { name: 'file', kind: 'file' },
  { name: 'sqlite-full', kind: 'sqlite', disk: 'small' },
  { name: 'postgres', kind: 'postgres' },
  { name: 'sqlite', kind: 'sqlite' },
  { name: 'file-power', kind: 'file', disk: 'journaled' },
  { name: 'sqlite-failing', kind: 'sqlite', disk: 'failing' },
  { name: 'postgres-power', kind: 'postgres', disk: 'journaled' },
  { name: 'file-full', kind: 'file', disk: 'small' },
  { name: 'file-failing', kind: 'file', disk: 'failing' },
]

const WORLD_MS = 75_000

/** Damage and aimed cases, once each: they take about two minutes. */
export async function playCases(folder: string, counts: Counts, only?: string): Promise<void> {
  if (only === undefined || only === 'damage') {
    await tryDamage(damageCases, join(folder, 'damage'), counts)
  }
  if (only !== undefined && only !== 'aimed') return
  for (const [i, aimed] of AIMED.entries()) {
    await tryCase(aimed, join(folder, `aimed-${i}`), counts)
  }
}

/** Plays one world after the other until time is up, and returns how many. */
export async function playWorlds(
  seed: number,
  until_ms: number,
  folder: string,
  counts: Counts,
  only?: string,
): Promise<number> {
  const shapes = SHAPES.filter(({ name }) => only === undefined || name === only)
  const random = new Random(seed)
  let played = 0
  while (nowMs() < until_ms && shapes.length > 0) {
    const { name, ...shape } = shapes[played % shapes.length]!
    const place = join(folder, String(played))
    counts.now = `${name} ${played}`
    const before = counts.violations.length
    const ms = Math.max(10_000, Math.min(WORLD_MS, until_ms - nowMs()))
    const plan = { ...shape, name: counts.now, seed: random.below(2 ** 31), ms, folder: place }
    await new World(plan, counts).play(wreak)
    // The histories of a world without fault are of no more use.
    if (counts.violations.length === before) rmSync(place, { recursive: true, force: true })
    played += 1
  }
  return played
}
