import { setTimeout as after } from 'node:timers/promises'
import { attempt } from '../../core/attempt.ts'
import { isInside } from '../../machine/checkout.ts'
import { GitHold } from '../../machine/git_hold.ts'
import { workingIn } from '../../machine/proc.ts'
import { step } from '../../machine/test_build.ts'
import { OpenCheckout } from './open_checkout.ts'

interface Where {
  top: string
  common: string
  /** The state folder of the store. */
  state: string
}

interface BranchMoveAsk {
  target: string
  old: string
  now: string
  why: string
  /** What else is in the same transaction of refs. */
  beside: string[]
}

/** What is in the way of a move, and the folders of git in which something changes when it goes. */
export interface Obstacle {
  obstacle: string
  within: string[]
}

/** A git of somebody else that is between two steps of a switch is waited for so long. */
const SWITCH_MS = 25
const SWITCH_MS_MAX = 5_000

/**
 * Moves a branch and all checkouts that have it, together. Their indexes are locked until their
 * files have followed, so that no commit there takes back what is moved.
 */
export class BranchMove {
  constructor(
    private readonly where: Where,
    private readonly ask: BranchMoveAsk,
  ) {}

  /** Answers what is in the way, that the branch is not `old` any more, or why git will not. */
  async make(): Promise<'moved' | 'changed' | Obstacle | { err: string }> {
    const { target, why } = this.ask
    const all = await OpenCheckout.all(this.where)
    const places = all.filter(({ branch }) => branch === target)
    const rebased = all.find((each) => each.rebased === target)
    const inTheWay = (obstacle: string, some = places) => ({
      obstacle,
      within: some.map(({ folder }) => folder),
    })
    if (rebased) {
      return inTheWay(`a rebase of ${target} is under way in ${rebased.path}`, [rebased])
    }
    // Without locking anything: it may be in the way for hours.
    const obstacle = await this.obstacle(places)
    if (obstacle !== null) return inTheWay(obstacle)
    // Somebody may be about to switch to it: git takes no lock for what it switches to.
    const away = all.filter((each) => each.mayBeBusy && !this.isOurs(each))
    const locked = places.length > 0 ? places : away
    const { path: cwd, env } = places[0] ?? { path: this.where.top, env: {} }
    const locks = locked.map(({ lock }) => lock)
    const hold = await GitHold.open({ cwd, env, locks, why: `leasehold: ${why}` })
    if (typeof hold === 'string') return inTheWay(`git is at work: ${hold}`, locked)
    try {
      step('lander:locked')
      return await this.under(hold, places, locked)
    } finally {
      for (const place of places) place.close()
      await hold.end()
    }
  }

  private async obstacle(places: OpenCheckout[], isLocked = false): Promise<string | null> {
    const { old, now } = this.ask
    for (const place of places) {
      const why = await place.obstacle(old, now, isLocked)
      if (why !== null) return why
    }
    return null
  }

  /** Those of runs and landers: on a branch of their own, and left by no person's `switch`. */
  private isOurs({ path, branch }: OpenCheckout): boolean {
    return branch?.startsWith('leasehold/') || isInside(this.where.state, path)
  }

  private async under(hold: GitHold, places: OpenCheckout[], locked: OpenCheckout[]) {
    const { target, old, now, beside } = this.ask
    const obstacle = await this.obstacle(places, true)
    if (obstacle !== null) return { obstacle, within: places.map(({ folder }) => folder) }
    if (!(await hold.prepare([...beside, `update refs/heads/${target} ${now} ${old}`]))) return hold
    step('lander:prepared')
    // From here on nobody switches away from it either: git has locked what is checked out.
    for (const each of locked) {
      if ((await each.has(target)) !== places.includes(each)) return 'changed' as const
    }
    for (const place of places) await place.follow(old, now)
    step('lander:filled')
    if (!(await hold.commit())) return hold
    if (places.length === 0) await this.switching(locked)
    await this.catchUp(places, locked)
    return 'moved' as const
  }

  /** Until nobody is in the middle of a switch who has looked at what the branch was before. */
  private async switching(locked: OpenCheckout[]): Promise<void> {
    const end = performance.now() + SWITCH_MS_MAX
    do await after(SWITCH_MS)
    while (locked.some(isAtWork) && performance.now() < end)
  }

  /** Who came to the branch meanwhile, by a switch or a new worktree, has what it was before. */
  private async catchUp(places: OpenCheckout[], locked: OpenCheckout[]): Promise<void> {
    const { target, old, now, why } = this.ask
    const among = (some: OpenCheckout[], { path }: OpenCheckout) =>
      some.some((each) => each.path === path)
    for (const late of await OpenCheckout.all(this.where)) {
      if (late.branch !== target || among(places, late)) continue
      const { path: cwd, env, lock } = late
      const hold = among(locked, late) || (await GitHold.open({ cwd, env, locks: [lock], why }))
      if (typeof hold === 'string') continue
      if ((await late.obstacle(old, now, true)) === null) await late.follow(old, now)
      late.close()
      if (hold !== true) await hold.end()
    }
  }
}

/** A git that sleeps is no switch: it waits for a person, or for another program. */
const isAtWork = ({ path }: OpenCheckout) =>
  attempt(() => workingIn(path), []).some(({ name, state }) => name === 'git' && state !== 'S')
