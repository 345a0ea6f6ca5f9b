import type { Task } from '../core/rows.ts'
import { showTask } from '../core/tasks/task.ts'
import type { View } from '../core/view.ts'
import * as answers from './answers/tasks.ts'
import * as f from './fields.ts'
import { operation } from './operation.ts'
import { cursorIn, pageOf } from './page.ts'

/** For boards: many tasks at once, or just those that something happened to. */
export const peek = operation({
  name: 'task.peek',
  effect: 'read',
  role: 'viewer',
  touches: 'rows',
  refuses: ['invalid'],
  doc: 'Tasks at a glance, without bodies and metadata: those named, or all, oldest first.',
  input: {
    ids: f.peekedTasks,
    status: f.statusOptional,
    project: f.filterProject,
    text: f.filterText,
    limit: f.limit,
    after: f.after,
  },
  output: answers.peekedTasks,
  decide: (view, { ids, status, project, text, limit, after }) => {
    const cursor = cursorIn(after)
    if (ids) {
      const items = ids.flatMap((id) => view.get('task', id) ?? []).map((t) => briefTask(view, t))
      return { items, next: null }
    }
    const isWanted = taskFilter(project, text)
    const show = (task: Task) => (isWanted(task) ? briefTask(view, task) : null)
    const [index, part] = status
      ? (['tasks_with_status', status] as const)
      : (['tasks', ''] as const)
    return pageOf(view.scan(index, part, cursor), index, limit, show, WALK_MAX)
  },
})

/** So many tasks are looked at per page: nobody waits while a million of them are searched. */
const WALK_MAX = 10_000

function taskFilter(project: string | undefined, text: string | undefined) {
  const wanted = text?.toLowerCase()
  return (task: Task): boolean => {
    if (project !== undefined && task.project !== project) return false
    if (wanted === undefined) return true
    const { id, title, user, assignee, labels } = task
    const words = [id, title, task.project, user, assignee, ...labels]
    return words.some((word) => word?.toLowerCase().includes(wanted))
  }
}

function briefTask(view: View, task: Task) {
  const { body: _body, metadata: _metadata, ...brief } = showTask(view, task)
  return { ...brief, unmet: task.unmet }
}
