import { change } from './ask.ts'
import type { ListedLanding } from './data/branches.ts'
import { confirm } from './parts/dialog.tsx'

const LAND_SAYS = [
  'It is put on top of its target, checked there, and only then does the target move.',
  'If it conflicts or its check fails, nothing changes, and its task comes back with the reason.',
]

interface Wanted {
  id?: string
  project?: string
  onto?: string | null
}

/** A task that is in review, or any branch of a project. */
export function landBranch({ id = '', project = '', onto }: Wanted = {}): void {
  confirm({
    title: 'Land a task or a branch',
    says: LAND_SAYS,
    verb: 'Land',
    fields: [
      { label: 'Task or branch', initial: id },
      { label: 'Project (of a branch)', initial: project },
      { label: "Onto (empty: the project's target)", initial: onto ?? '' },
    ],
    run: async (what = '', of = '', target = '') => {
      const more = { ...(of !== '' && { project: of }), ...(target !== '' && { onto: target }) }
      const { note } = await change('land.add', { id: what.trim(), ...more })
      return note
    },
  })
}

export function cancelLanding({ id, task_id, target }: ListedLanding): void {
  const from = target === null ? 'It is not checked.' : `It leaves the line for ${target}.`
  const after = task_id === null ? 'Its branch stays as it is.' : `Task ${task_id} stays in review.`
  confirm({
    title: `Cancel landing ${id}?`,
    says: [from, after],
    verb: 'Cancel landing',
    danger: true,
    run: async () => {
      await change('land.cancel', { id })
      return `Landing ${id} was cancelled`
    },
  })
}
