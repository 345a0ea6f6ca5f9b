import type { Landing } from '../../core/schema/landing.ts'
import { isEnding, type Event } from '../../core/event.ts'
import { Refusal } from '../../core/refusal.ts'
import { LANDER_LOCK } from '../../core/landing/ask.ts'
import {
  holdUp,
  type LandingEnd,
  type TargetLine,
  markLanded,
  type Proposed,
  proposeLandings,
  putBack,
  returnLanding,
  takeLandings,
  takenBefore,
  targetsOf,
  tellLine,
  wasDispatched,
  worktreeOf,
} from '../../core/landing/turn.ts'
import type { View } from '../../core/view.ts'
import { FILES_MS, type Repository, whileWanted } from '../../machine/git.ts'
import { sha256 } from '../../machine/digest.ts'
import type { Store } from '../../stores/writer/store.ts'
import type { LandConfig } from '../config/schema.ts'
import { allowedOf } from '../dispatch/launch.ts'
import { Elected } from '../elected.ts'
import { Role } from '../role.ts'
import { step } from '../../machine/test_build.ts'
import { CheckoutChanges } from './checkout_changes.ts'
import { type Checked, runCheck, Verdicts } from './check.ts'
import { findSource, type LandedProject, type Landable, type Source } from './source.ts'
import { Term } from './term.ts'
import { WorkRounds, TurnsByLine, Turns } from '../turns.ts'

export interface LanderOptions {
  repository: Repository
  projects: LandedProject[]
  /** Where its trees are; it exists, and this is its real path. */
  folder: string
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
}

/** What is in the way outside of the store is looked at again by itself, less and less often. */
const AGAIN_MS = 500
const AGAIN_MS_MAX = 30_000
/** Told to stop, it ends what git is about to do for it, unless git hangs. */
const GRACE_MS = 2_000

/**
 * Lands what waits for the targets of one repository: brings it up to date, checks it, moves the
 * target. It may die at any time: its successor finds by git what was landed.
 */
export class Lander {
  private readonly role: Role
  private readonly host: string
  private readonly elected: Elected
  private term: Term | undefined
  private ending = new AbortController()
  private unwanted = new AbortController()
  private readonly rounds = new WorkRounds(
    () => this.isActive,
    () => this.look(),
  )
  private readonly lines = new TurnsByLine()
  private readonly tree = new Turns()
  private told = ''
  private again_ms = AGAIN_MS
  private forget = () => {}
  private readonly changes = new CheckoutChanges()
  private readonly verdicts = new Verdicts()

  constructor(
    private readonly store: Store,
    private readonly options: LanderOptions,
  ) {
    const { common } = options.repository
    this.host = store.host()
    const name = `${LANDER_LOCK}${this.host}:${sha256(common).slice(0, 16)}`
    this.role = new Role(store, name, 'lander')
    const duty = { begin: () => this.begin(), end: () => this.end() }
    this.elected = new Elected(store, this.role, duty, options.say)
  }

  start(): Promise<void> {
    return this.elected.startOrStandBy()
  }

  stop(): Promise<void> {
    return this.elected.stop()
  }

  private async begin(): Promise<void> {
    this.ending = new AbortController()
    this.unwanted = new AbortController()
    this.forget = this.store.onCommit((events) => events.some(mayLand) && this.rounds.wake())
    this.rounds.wake()
  }

  private async end(): Promise<void> {
    this.ending.abort()
    this.forget()
    await this.rounds.over()
    const late = setTimeout(() => this.unwanted.abort(), GRACE_MS)
    await this.lines.over()
    clearTimeout(late)
    this.changes.close()
    await this.term?.end().catch(() => undefined)
    this.term = undefined
  }

  private get isActive(): boolean {
    return !this.ending.signal.aborted
  }

  private wakeLater(in_ms = this.again_ms): void {
    this.rounds.wakeIn(in_ms)
    this.again_ms = Math.min(in_ms * 2, AGAIN_MS_MAX)
  }

  private async look(): Promise<void> {
    for (const project of this.options.projects) {
      const looked = this.store.read((view) => targetsOf(view, project.name))
      // A store in trouble is asked again. What one target waits for holds up no other.
      const targets = await looked.catch(() => (this.wakeLater(), []))
      for (const target of targets) this.serveSoon(project, target)
    }
  }

  /** One that waits for a remote holds up no other; those of one target would outrun each other. */
  private serveSoon(project: LandedProject, target: string | null): void {
    const line = { project: project.name, target, host: this.host, fence: this.role.fence }
    const told = (what: string) => this.write((view) => tellLine(view, line, what))
    const slow = (what: string) => void told(what).catch(() => undefined)
    const { signal } = this.unwanted
    const serve = () => whileWanted({ signal, slow }, () => this.serve(project, target))
    this.lines.serve(target, project.name, serve)
  }

  /** Lands what can be landed of one line; says what is in the way of the rest. */
  private async serve(project: LandedProject, target: string | null): Promise<void> {
    try {
      while (await this.turn(project, target));
    } catch (error) {
      if (!this.isActive) return
      // Another has begun, as git knows: it goes on, or else this one begins again.
      this.term?.forget(target)
      this.wakeLater()
      await this.hold(project, target, error as Error).catch(() => undefined)
    }
  }

  private async hold({ name }: LandedProject, target: string | null, error: Error): Promise<void> {
    const line = { project: name, target, host: this.host, fence: this.role.fence }
    await this.write((view) => holdUp(view, line, error.message))
    if (error.message !== this.told) this.options.say(`lander: ${error.message}`)
    this.told = error.message
  }

  /** For a write that only the lander of today may make. */
  private write<T>(decide: (view: View) => T): Promise<T> {
    return this.store.write((view) => {
      this.role.check(view)
      return decide(view)
    })
  }

  /** Takes what is first in line, and sees it through. False when nothing waits that could go. */
  private async turn(project: LandedProject, target: string | null): Promise<boolean> {
    if (!this.isActive) return false
    const { name, land } = project
    await this.write(() => undefined)
    const term = await this.tree.take(() => this.termNow())
    if (target !== null) await term.begin(target, land.remote)
    const line = { project: name, target, host: this.host, fence: term.fence, max: land.together }
    await this.settleFormer(land, term, line)
    const taken = await this.write((view) => takeLandings(view, line, this.role.caller))
    this.verdicts.forgetFailures()
    step('lander:taken')
    const blocked = await this.settle(project, term, await this.ready(project, taken))
    if (blocked) this.wakeLater()
    else if (taken.length > 0) this.again_ms = AGAIN_MS
    return taken.length > 0 && !blocked
  }

  /** The term of the lease that this process has now: it may have lost one and got another. */
  private async termNow(): Promise<Term> {
    const { repository, folder } = this.options
    if (this.term && this.term.fence !== this.role.fence) await this.term.end()
    if (this.term?.fence === this.role.fence) return this.term
    return (this.term = new Term(repository, folder, this.role.name, this.role.fence))
  }

  /** What a lander before had taken is landed if git says so, and else in line again. */
  private async settleFormer(land: LandConfig, term: Term, line: TargetLine): Promise<void> {
    const former = await this.store.read((view) => takenBefore(view, line))
    const { target } = line
    for (const each of former) {
      const { candidate, fence } = each
      const isPushed = target !== null && land.remote !== null && candidate !== null
      if (isPushed && fence !== term.fence) await term.endOthers(target, land.remote!)
      const isLanded =
        target !== null && candidate && (await term.contains(target, land.remote, candidate))
      await this.write((view) => {
        if (isLanded) markLanded(view, each, candidate, this.role.caller)
        else putBack(view, each)
      })
    }
  }

  /** Those that have something to land; the others come back. */
  private async ready(project: LandedProject, taken: Landing[]): Promise<Landable[]> {
    const { path: folder, land, hasWorktrees } = project
    const ready: Landable[] = []
    for (const landing of taken) {
      const [worktree, wasRun] = await this.store.read((view) => {
        return [worktreeOf(view, landing), wasDispatched(view, landing)] as const
      })
      const isGone = hasWorktrees && wasRun && !worktree
      const ask = { landing, worktree, isGone, folder, remote: land.remote }
      const source = await findSource(ask).catch((error: Error): Source => {
        // What git cannot say of one says nothing of the others.
        if (!this.isActive || !(error instanceof Refusal)) throw error
        return { reason: error.message }
      })
      if ('commit' in source) ready.push({ landing, commit: source.commit })
      else await this.giveBack(landing, source)
    }
    return ready
  }

  private giveBack(landing: Landing, end: LandingEnd): Promise<void> {
    return this.write((view) => returnLanding(view, landing, end, this.role.caller))
  }

  private async putBack(some: Landable[], reason: string | null = null): Promise<void> {
    await this.write((view) => some.forEach(({ landing }) => putBack(view, landing, reason)))
  }

  /**
   * Stacks landings in their order, checks the whole once, and moves the target to its top. If the
   * check fails, the halves are tried: what fails alone comes back. True when something outside of
   * the store is in the way.
   */
  private async settle(project: LandedProject, term: Term, all: Landable[]): Promise<boolean> {
    const [first] = all
    if (!first) return false
    const { target } = first.landing
    if (target === null) return this.checkAlone(project, term, first)
    const base = await term.tip(target, project.land.remote)
    const stack = await this.stack(project, term, base, all)
    const top = stack.at(-1)?.top
    if (top === undefined) return false
    const { failed, output } = await this.check(project, term, top)
    if (!this.isActive) {
      await this.putBack(stack)
      return false
    }
    if (failed === null) return this.land(project, term, base, stack)
    if (stack.length === 1) {
      await this.giveBack(stack[0]!.landing, { reason: failed, output })
      return false
    }
    const half = Math.ceil(stack.length / 2)
    const blocked = await this.settle(project, term, stack.slice(0, half))
    if (!blocked) return this.settle(project, term, stack.slice(half))
    await this.putBack(stack.slice(half))
    return true
  }

  private async checkAlone(project: LandedProject, term: Term, one: Landable): Promise<boolean> {
    const { landing, commit } = one
    const { failed, output } = await this.check(project, term, commit)
    if (!this.isActive) await this.putBack([one])
    else if (failed !== null) await this.giveBack(landing, { reason: failed, output })
    else {
      const { id, fence } = landing
      const proposed: Proposed = { id, fence, commit, base: null, candidate: commit }
      await this.write((view) => {
        const gone = proposeLandings(view, [proposed], this.role.caller)
        if (gone.length === 0) markLanded(view, landing, commit, this.role.caller)
      })
    }
    return false
  }

  /**
   * One on top of the other. The first that conflicts comes back if nothing is under it but the
   * target; else it waits until what is under it has been settled, and those behind it with it.
   */
  private async stack(project: LandedProject, term: Term, base: string, all: Landable[]) {
    const stack: Landable[] = []
    let under = base
    for (const [i, one] of all.entries()) {
      const { landing, commit } = one
      const put = await this.put(project, term, under, one)
      if ('top' in put) {
        stack.push({ landing, commit, top: put.top })
        under = put.top
      } else if (stack.length > 0) {
        await this.putBack(all.slice(i))
        break
      } else if ('nothing' in put) {
        await this.giveBack(landing, { reason: `${landing.target} has all of it already` })
      } else if ('broken' in put) {
        await this.giveBack(landing, { reason: put.broken, paths: put.paths, commit })
      } else {
        const paths = put.conflict
        const reason = `it conflicts with ${landing.target} in ${paths.join(', ')}`
        await this.giveBack(landing, { reason, paths, commit })
      }
    }
    return stack
  }

  private async put({ land }: LandedProject, term: Term, under: string, one: Landable) {
    const key = `${land.method} ${one.commit} on ${under}`
    const known = this.verdicts.tops.get(key)
    if (known !== undefined) return { top: known }
    const { branch, task_id } = one.landing
    const message = `Land ${task_id === null ? branch : `task ${task_id}`}`
    const put = await this.tree.take(() => {
      term.patience_ms = Math.min(FILES_MS, land.check_seconds * 1000)
      return term.stack(under, one.commit, land.method, message)
    })
    if ('top' in put) this.verdicts.tops.put(key, put.top)
    return put
  }

  private async check({ name, land }: LandedProject, term: Term, top: string): Promise<Checked> {
    const key = `${name} ${top}`
    const known = this.verdicts.checked.get(key)
    if (known || !land.check) return known ?? { failed: null, output: '' }
    const { signal } = this.ending
    const env = allowedOf(this.options.env)
    const { check: argv, check_seconds: seconds } = land
    const checked = await this.tree.take(async () =>
      runCheck({ argv, cwd: await term.at(top), env, seconds, signal }),
    )
    if (!signal.aborted) this.verdicts.checked.put(key, checked)
    return checked
  }

  /** Moves the target to the top of a stack that passed. True when something is in the way. */
  private async land(project: LandedProject, term: Term, base: string, stack: Landable[]) {
    const target = stack[0]!.landing.target!
    const { remote } = project.land
    const top = stack.at(-1)!.top!
    const proposed = stack.map(({ landing: { id, fence }, commit, top: candidate }): Proposed => {
      return { id, fence, commit, base, candidate: candidate! }
    })
    const gone = await this.write((view) => proposeLandings(view, proposed, this.role.caller))
    if (gone.length > 0) {
      await this.putBack(stack)
      return false
    }
    step('lander:proposed')
    const move = { target, old: base, now: top, landed: stack.map(({ commit }) => commit) }
    const why = `land ${stack.map(({ landing }) => landing.task_id ?? landing.branch).join(', ')}`
    const moved =
      remote === null
        ? await this.tree.take(() => term.move({ ...move, why }))
        : await term.push({ ...move, remote })
    if (moved === 'changed' || moved === false) {
      // Somebody else has moved it: all of this is brought up to date once more.
      await this.putBack(stack)
      return false
    }
    if (typeof moved === 'object') {
      await this.putBack(stack, moved.obstacle)
      this.changes.once(moved.within, () => this.wakeLater(AGAIN_MS))
      return true
    }
    step('lander:moved')
    await this.write((view) => {
      for (const each of proposed) markLanded(view, each, each.candidate, this.role.caller)
    })
    return false
  }
}

/** Something is asked for, or a command has ended whose task was said to be done. */
const mayLand = (event: Event) =>
  event.type === 'landing.asked' || event.type === 'run.ended' || isEnding(event)
