import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { Random } from '../../simulation/random.ts'
import { AIMED, tryCase } from './cases.ts'
import type { Counts } from './counts.ts'
import { damageCases, tryDamage } from './damaging.ts'
import { nowMs } from './history.ts'
import { type Kind, World, type WorldPlan } from './world.ts'

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
  { name: 'file-full', kind: 'file', disk: 'small' },
  { name: 'file-failing', kind: 'file', disk: 'failing' },
]

const WORLD_MS = 75_000

/** Worlds one after the other, for about so long. */
export function plansFor(seed: number, ms: number, only?: string): Omit<WorldPlan, 'folder'>[] {
  const shapes = SHAPES.filter(({ name }) => only === undefined || name === only)
  if (shapes.length === 0) return []
  const random = new Random(seed)
  const count = Math.max(1, Math.round(ms / WORLD_MS))
  return Array.from({ length: count }, (_, i) => {
    const { name, kind, disk } = shapes[i % shapes.length]!
    const plan: Omit<WorldPlan, 'folder'> = {
      name: `${name} ${i}`,
      kind: kind satisfies Kind,
      seed: random.below(2 ** 31),
      ms: Math.min(ms / count, WORLD_MS),
    }
    return disk ? { ...plan, disk } : plan
  })
}

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

/** Plays them all; folders of those without fault are taken away. Returns how many. */
export async function playAll(
  plans: Omit<WorldPlan, 'folder'>[],
  folder: string,
  counts: Counts,
): Promise<number> {
  for (const [i, plan] of plans.entries()) {
    counts.now = plan.name
    const before = counts.violations.length
    const place = join(folder, String(i))
    const begun = nowMs()
    await new World({ ...plan, folder: place }, counts).play()
    counts.figure('seconds', Math.round((nowMs() - begun) / 1000))
    if (counts.violations.length === before) rmSync(place, { recursive: true, force: true })
  }
  return plans.length
}
