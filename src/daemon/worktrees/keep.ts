import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { DAY_MS } from '../../core/retention.ts'
import { inUseBy, noWorktree, type SeenWorktree } from '../../core/queue/worktree.ts'
import { type AskTrees, type Entered, inRepository } from './entered.ts'
import type { KeeperSpec } from './keeper.ts'
import { removeWorktree } from './remove.ts'
import { leaveTree, settleTree } from './settle.ts'
import type { SalvageRules } from './tree.ts'

const DEFAULT: SalvageRules = { ignored: null, bytes_max: 1024 ** 2 }

/**
 * Does what a keeper is asked to in one repository of this host. Answers why a worktree that was to
 * be removed is kept; undefined when it is gone, or nothing was to be removed.
 */
export function keepRepository(ask: AskTrees, spec: KeeperSpec): Promise<string | undefined> {
  return inRepository(ask, spec, async (entered) => {
    if (spec.id === null) return keepAll(entered, spec)
    const tree = entered.items.find(({ id }) => id === spec.id)
    if (!tree) throw noWorktree(spec.id)
    if (!tree.is_over) throw inUseBy(tree)
    const rules = rulesOf(spec, tree)
    const settled = await settleTree(entered, tree, rules)
    if (!settled) return undefined
    if (spec.want === 'remove') return removeWorktree(entered, settled, rules)
    if (existsSync(spec.repository)) await leaveTree(entered, settled, rules, true)
    return undefined
  })
}

const rulesOf = ({ rules }: KeeperSpec, { project }: SeenWorktree) =>
  rules[project]?.salvage ?? DEFAULT

/** All whose run is over come to rest; what was kept long enough goes, where it is safe. */
async function keepAll(entered: Entered, spec: KeeperSpec): Promise<undefined> {
  const left: SeenWorktree[] = []
  const failed: unknown[] = []
  // One that cannot be brought to rest keeps none of the others from it.
  const each = async (trees: SeenWorktree[], work: (tree: SeenWorktree) => Promise<unknown>) => {
    for (const tree of trees) await work(tree).catch((error: unknown) => failed.push(error))
  }
  await each(entered.items, async (tree) => {
    const settled = tree.is_over && (await settleTree(entered, tree, rulesOf(spec, tree)))
    if (settled) left.push({ ...settled, is_over: true })
  })
  await each(dueOf(spec, left), (tree) => removeWorktree(entered, tree, rulesOf(spec, tree)))
  if (failed.length > 0) throw failed[0]
}

/** The oldest first: those that are too old, and those beyond the room that a project has. */
function dueOf({ rules }: KeeperSpec, left: SeenWorktree[]): SeenWorktree[] {
  const newest = left.toSorted((a, b) => (a.left_at! < b.left_at! ? 1 : -1))
  const used = new Map<string, number>()
  const due = newest.filter(({ project, path, left_at }) => {
    const { days, bytes } = rules[project]?.keep ?? { days: null, bytes: null }
    if (days !== null && Date.now() - Date.parse(left_at!) >= days * DAY_MS) return true
    if (bytes === null) return false
    const all = (used.get(project) ?? 0) + bytesIn(path)
    used.set(project, all)
    return all > bytes
  })
  return due.toReversed()
}

/** How much room the files of a folder take, roughly. */
function bytesIn(folder: string): number {
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true }), [])
  return entries.reduce((sum, entry) => {
    const path = join(entry.parentPath ?? folder, entry.name)
    const own = entry.isFile() ? attempt(() => statSync(path).size, 0) : 0
    return sum + own + (entry.isDirectory() ? bytesIn(path) : 0)
  }, 0)
}
