import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownProcess } from '../../src/machine/process.ts'
import { call } from '../../src/operations/call.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { callerOf } from '../support/helpers.ts'
import { GitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { LandingScene } from './scene.ts'

/** What an agent does in its worktree before it says that it is done. */
const LIES: Record<string, { does: (tree: GitRepo, id: string) => void; told: RegExp }> = {
  'commits nothing': { does: () => undefined, told: /nothing was committed/ },
  'breaks the test': {
    does: (tree, id) => void tree.commit('Broken', { [`${id}.ts`]: '', red: '' }),
    told: /its check failed \(exit 1\)/,
  },
  'leaves its work uncommitted': {
    does: (tree, id) => void tree.write({ [`${id}.ts`]: 'x' }),
    told: /changes were left uncommitted: \S+\.ts/,
  },
  'commits half of it': {
    does: (tree, id) => {
      tree.commit('Half', { [`${id}.ts`]: 'x' })
      tree.write({ 'a.txt': 'the other half\n' })
    },
    told: /changes were left uncommitted: a\.txt/,
  },
  'works on another branch': {
    does: (tree, id) => {
      tree.git('checkout', '--quiet', '-b', `mine-${id}`)
      tree.commit('Elsewhere', { [`${id}.ts`]: 'x' })
    },
    told: /nothing was committed on leasehold\/\S+: it is on mine-/,
  },
  'leaves its branch': {
    does: (tree, id) => {
      tree.commit('Here', { [`${id}.ts`]: 'x' })
      tree.git('checkout', '--quiet', '--detach')
    },
    told: /not on its branch .*it is on no branch/,
  },
  'commits an empty commit': {
    does: (tree) => void tree.commit('I did a lot'),
    told: /main has all of it already/,
  },
  'takes its commit back': {
    does: (tree, id) => {
      tree.commit('Here', { [`${id}.ts`]: 'x' })
      tree.git('revert', '--no-edit', 'HEAD')
    },
    told: /main has all of it already/,
  },
}

/** `FAULTS=long`: 40 in all, and five times as long. */
const EACH = process.env['FAULTS'] === 'long' ? 5 : 1

class Lying extends LandingScene {
  /** A run of its own, in a worktree of its own, as a dispatcher would have made it. */
  async run(id: string) {
    await this.verbs.enqueue({ id, user: id })
    const { run, task } = (await this.verbs.dispatch('d', ownProcess()))!
    const path = join(this.top, '.leasehold', 'worktrees', 'web', run.id)
    const branch = `leasehold/${id}-${run.id}`
    this.repo.git('worktree', 'add', '--quiet', '-b', branch, path, 'main')
    const base = this.repo.head('main')
    const times = { begun_at: new Date().toISOString(), left_at: null }
    const none = { salvage: null, changed: [], kept_because: null }
    const whose = {
      id: run.id,
      task_id: id,
      run_id: run.id,
      fence: run.fence,
      project: 'web',
      host: this.store.host(),
    }
    const repository = join(this.top, '.git')
    await this.store.write((view) => {
      view.put('worktree', {
        ...whose,
        ...times,
        ...none,
        ...{ repository, path, branch, base, state: 'ready' },
      })
    })
    return { run, task, tree: new GitRepo(path) }
  }
}

test(
  'agents that say "done" and are wrong never reach it; the honest do',
  async () => {
    const scene = await new Lying({ auto: true }).begin()
    await scene.verbs.register('d', { slots_max: 100, process: ownProcess() })
    await scene.lander()
    const said: { id: string; told: RegExp }[] = []
    const notes = new Set<string>()
    for (const [n, [lie, { does, told }]] of Object.entries(LIES).entries()) {
      for (let i = 0; i < EACH; i += 1) {
        const id = `lie-${n}-${i}`
        const { run, tree } = await scene.run(id)
        does(tree, id)
        // Half of them say it by the tool, while they run; the others by ending well.
        if ((n + i) % 2 === 0) {
          const input = { id, status: 'done', fence: run.fence } as const
          const { task, note } = await call(
            scene.store,
            tasks.setStatus,
            input,
            callerOf(run.agent),
          )
          expect(task?.status, lie).toBe('review')
          notes.add(note!.replaceAll(id, 'ID').replaceAll(/L\d+/g, 'L'))
        } else await scene.verbs.finishRun(run)
        said.push({ id, told })
      }
    }
    expect(said).toHaveLength(8 * EACH)
    const honest = await scene.run('honest')
    honest.tree.commit('Work', { 'honest.ts': 'x' })
    await scene.verbs.finishRun(honest.run)
    await until('the honest one is done', async () => {
      return (await scene.verbs.task('honest')).status === 'done'
    })
    for (const { id, told } of said) {
      const { status, metadata } = await scene.verbs.task(id)
      expect({ id, status }).toEqual({ id, status: 'failed' })
      expect(metadata['returned'], id).toMatch(told)
      expect(metadata).not.toHaveProperty('proof')
    }
    expect(scene.files()).toEqual(['.gitignore', 'a.txt', 'honest.ts'])
    expect(scene.repo.git('log', '--format=%s', 'main').split('\n')).toEqual(['Work', 'Begin'])
    expect([...notes]).toEqual([
      'Task ID is in review: it is being landed onto main (landing L). It becomes done when that ' +
        'succeeds. You get it back, with the reason, if it has nothing committed, leaves changes ' +
        'uncommitted, conflicts, or its check fails.',
    ])
  },
  60_000 * EACH,
)
