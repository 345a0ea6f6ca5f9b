import type { Worktree } from '../../core/schema/worktree.ts'
import { isDeepStrictEqual } from 'node:util'
import { type AskTrees, inRepository } from './entered.ts'
import { makeWorktree, type Made, type MakeAsk } from './make.ts'
import { changedSoFar } from './salvage.ts'
import { leaveTree } from './settle.ts'
import { isOurs } from './tree.ts'
import { commitLeft, type RunWords } from './commit_left.ts'

/** The command of a run that is first set up: its argument list goes on behind those of `setup`. */
const SET_UP = `n=$1; shift; i=0; said=
while [ "$i" -lt "$n" ]; do i=$((i + 1)); said="$said \\"\\\${$i}\\""; done
eval "$said" </dev/null || {
  code=$?
  echo "leasehold: setup failed (exit $code), so the agent was not started" >&2
  exit "$code"
}
shift "$n"
exec "$@"`

/** The worktree of one run, from its runner's side. */
export class RunTree {
  made: Made | undefined
  private telling: Promise<void> | undefined
  private isOver = false

  constructor(
    private readonly ask: AskTrees,
    private readonly making: MakeAsk,
  ) {}

  /** Makes it, and says where the command begins. Refuses in words where it cannot be made. */
  async make(): Promise<string> {
    this.made = await makeWorktree(this.ask, this.making)
    return this.made.cwd
  }

  /** The command with what sets it up, in one process group. */
  commandOf(argv: string[]): string[] {
    const { setup } = this.making.rules
    if (!setup) return argv
    return ['/bin/sh', '-c', SET_UP, 'leasehold-setup', String(setup.length), ...setup, ...argv]
  }

  get teardown(): { argv: string[]; cwd: string } | undefined {
    const { teardown } = this.making.rules
    return teardown && this.made ? { argv: teardown, cwd: this.made.cwd } : undefined
  }

  /** Lets others know what the command has changed so far, to foresee conflicts with it. */
  tell(): void {
    const tell = () => this.tellChanged().finally(() => (this.telling = undefined))
    // What could not be told now is told the next time, or at the end.
    if (!this.isOver) this.telling ??= tell().catch(() => undefined)
  }

  private async tellChanged(): Promise<void> {
    if (!this.made) return
    const { worktree } = this.made
    const { task_id, fence } = worktree
    const now = { ...worktree, changed: await changedSoFar(worktree) }
    if (isDeepStrictEqual(now.changed, worktree.changed)) return
    const run = { task_id, fence }
    await inRepository(this.ask, worktree, (entered) => entered.record(now), run)
    this.made = { ...this.made, worktree: now }
  }

  /** It has ended well: what it did not commit is committed onto its branch. */
  async commit(said: RunWords): Promise<void> {
    if (this.made) await commitLeft(this.made.worktree, said)
  }

  /** Nothing of the command is left: what it did not commit is saved. */
  async leave(): Promise<void> {
    this.isOver = true
    await this.telling
    if (!this.made) return
    const { worktree } = this.made
    const { id } = worktree
    const isOwn = (each: Worktree) => each.id === id && each.run_id === this.making.run_id
    await inRepository(this.ask, worktree, async (entered) => {
      // After a pause another run may be at work in it.
      const known = entered.items.find((each) => each.id === id)
      const isOwnYet = known ? isOwn(known) && known.state === 'ready' : isOurs(worktree)
      // Of a store that was restored since, the row is gone, and what the command did is there.
      const own = isOwnYet ? (known ?? worktree) : undefined
      if (own) await leaveTree(entered, own, this.making.rules.salvage)
    })
  }
}
