import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { aboutBranches } from './about.ts'
import { useAsked } from './asked.ts'

export type ListedLanding = AnswerOf<'land.list'>['items'][number]
export type ListedWorktree = AnswerOf<'worktree.list'>['items'][number]

/** That a lander has taken a landing, or put it back, leaves no event. */
export const LOOK_MS = 3_000
const LANDINGS_MAX = 200
const WORKTREES_MAX = 1_000

export interface Listed<T> {
  items: T[]
  /** There are more than are shown. */
  isCut: boolean
}

/** The newest landings, and all that are not over, however old. */
async function landings(): Promise<Listed<ListedLanding>> {
  const { items, next } = await ask('land.list', { limit: LANDINGS_MAX })
  if (next === null) return { items, isCut: false }
  const open = await Promise.all(
    (['landing', 'waiting'] as const).map((status) => ask('land.list', { status, limit: 1000 })),
  )
  const all = [...items, ...open.flatMap((page) => page.items)]
  return { items: [...new Map(all.map((each) => [each.id, each])).values()], isCut: true }
}

async function worktrees(): Promise<Listed<ListedWorktree>> {
  const { items, next } = await ask('worktree.list', { limit: WORKTREES_MAX })
  return { items: items.toReversed(), isCut: next !== null }
}

const how = { affects: aboutBranches, every_ms: LOOK_MS }
export const useLandings = () => useAsked('landings', landings, how)
export const useWorktrees = () => useAsked('worktrees', worktrees, how)

export const ontoOf = (target: string | null) => (target === null ? 'only checked' : target)
