import { dirname, join } from 'node:path'
import type { AskTrees } from '../../src/daemon/worktrees/entered.ts'
import { keepRepository } from '../../src/daemon/worktrees/keep.ts'
import { makeWorktree } from '../../src/daemon/worktrees/make.ts'
import type { WorktreeRules } from '../../src/daemon/worktrees/tree.ts'
import { MARK, newMark, takeMark } from '../../src/machine/group.ts'
import { machine } from '../../src/machine/machine.ts'
import { host, ownProcess } from '../../src/machine/process.ts'
import { call } from '../../src/operations/call.ts'
import type { Operation } from '../../src/operations/operation.ts'
import * as worktrees from '../../src/operations/worktrees.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { GitRepo } from './git_repo.ts'
import { callerOf, openSqlite, temporaryFolder } from './helpers.ts'
import { QueueVerbs } from './queue_verbs.ts'

const RULES: WorktreeRules = {
  base: null,
  folder: '',
  copy: [],
  setup: null,
  teardown: null,
  retry: 'same',
  keep: { days: null, bytes: null },
  salvage: { ignored: null, bytes_max: 1000 },
}

export type Want = 'settle' | 'salvage' | 'remove'

/** A store, and worktrees that runs of its tasks are given in real repositories. */
export class Trees {
  readonly store: Store
  readonly verbs: QueueVerbs
  readonly caller = callerOf('run', { process: ownProcess(), admin: true })
  private tasks = 0

  constructor(folder = temporaryFolder()) {
    this.store = openSqlite(folder, machine)
    this.verbs = new QueueVerbs(this.store)
    // As a runner has it, so that what it has started could be stopped.
    process.env[MARK] = newMark()
    takeMark()
  }

  ask: AskTrees = (name, input) => {
    const operation = name === 'worktree.enter' ? worktrees.enter : worktrees.record
    return call(this.store, operation as unknown as Operation, input, this.caller)
  }

  /** A task that is claimed, and what its runner asks for. */
  async claimed(folder: string, more: Partial<WorktreeRules> = {}, given?: string) {
    const { verbs, caller } = this
    const id = given === undefined ? {} : { id: given }
    const task = await verbs.add(`task ${(this.tasks += 1)}`, caller, { project: 'web', ...id })
    const { run } = await verbs.claim(task.id, caller)
    const { id: run_id, fence } = run
    const rules = { ...RULES, folder: join(dirname(folder), `trees ü ${run_id}`), ...more }
    const making = { run_id, task_id: task.id, fence, project: 'web', host, folder, rules }
    /** Ends the run, as if its runner had been killed. */
    const end = async () => void (await verbs.release(`task:${task.id}`, caller))
    return { making, end }
  }

  /** A worktree of a new run in `folder`. */
  async made(folder: string, more: Partial<WorktreeRules> = {}, given?: string) {
    const { making, end } = await this.claimed(folder, more, given)
    const { worktree, cwd } = await makeWorktree(this.ask, making)
    const tree = new GitRepo(worktree.path)
    const { repository, id } = worktree
    const keep = (want: Want) => this.keep(repository, making.rules, want, id)
    const row = () => this.store.read((view) => view.get('worktree', id))
    return { worktree, tree, cwd, keep, end, row, saved: `refs/leasehold/salvage/${making.run_id}` }
  }

  keep(repository: string, rules: WorktreeRules, want: Want, id: string) {
    const { keep: kept, salvage } = rules
    const spec = { place: {}, host, repository, rules: { web: { keep: kept, salvage } }, want }
    return keepRepository(this.ask, { ...spec, id: want === 'settle' ? null : id })
  }
}
