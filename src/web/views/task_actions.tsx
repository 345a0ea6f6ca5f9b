import { assignTask, cancelTask, moveTask, prioritiseTask, retryTask } from '../actions.ts'
import type { WholeTask } from '../data/about.ts'
import { Button } from '../parts/buttons.tsx'
import { mayWork } from '../session.ts'

/** What a person may do with a task as it stands. */
export function TaskActions({ task }: { task: WholeTask }) {
  if (!mayWork()) return null
  const { id, status } = task
  const isOpen = status === 'todo' || status === 'in_progress' || status === 'review'
  return (
    <>
      {status === 'review' && (
        <>
          <Button kind="primary" act={() => moveTask(id, 'done')}>
            Approve
          </Button>
          <Button act={() => moveTask(id, 'todo')}>Send back</Button>
        </>
      )}
      {(status === 'failed' || status === 'cancelled') && (
        <Button kind="primary" act={() => retryTask(id)}>
          Retry
        </Button>
      )}
      {isOpen && <Button act={() => prioritiseTask(task)}>Priority</Button>}
      {status === 'todo' && !task.queue && <Button act={() => assignTask(task)}>Assign</Button>}
      {isOpen && (
        <Button kind="danger-quiet" act={() => cancelTask(id, status === 'in_progress')}>
          Cancel task
        </Button>
      )}
    </>
  )
}
