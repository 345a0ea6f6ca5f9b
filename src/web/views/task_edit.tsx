import { useSignal } from '@preact/signals'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { change } from '../ask.ts'
import type { WholeTask } from '../data/about.ts'
import { Button } from '../parts/buttons.tsx'
import { Trouble } from '../parts/empty.tsx'
import { toast } from '../parts/toast.tsx'

/** What may be changed here, as text. */
interface Draft {
  title: string
  body: string
  project: string
  priority: string
  labels: string
}

const draftOf = (task: WholeTask): Draft => ({
  title: task.title,
  body: task.body,
  project: task.project ?? '',
  priority: String(task.priority),
  labels: task.labels.join(', '),
})

/** Only what the person changed: what somebody else changed meanwhile stays theirs. */
function changesIn(draft: Draft, base: Draft) {
  const of = (key: keyof Draft) => draft[key] !== base[key]
  const words = draft.labels.split(',').map((word) => word.trim())
  return {
    ...(of('title') && { title: draft.title }),
    ...(of('body') && { body: draft.body }),
    ...(of('project') && { project: draft.project === '' ? null : draft.project }),
    ...(of('priority') && { priority: Number(draft.priority) }),
    ...(of('labels') && { labels: words.filter((word) => word !== '') }),
  }
}

export function TaskEdit({ task }: { task: WholeTask }) {
  // The version that was read when editing began: what comes later is a conflict, not a surprise.
  const base = useSignal(task)
  const draft = useSignal(draftOf(task))
  const refusal = useSignal<Refusal | null>(null)
  const theirs = useSignal<WholeTask | null>(null)
  const save = async (onto: WholeTask) => {
    const changes = changesIn(draft.value, draftOf(base.value))
    try {
      const saved = await change('task.update', { id: task.id, version: onto.version, ...changes })
      toast(`Task ${task.id} is now version ${saved.version}`)
      ;[base.value, draft.value, theirs.value, refusal.value] = [saved, draftOf(saved), null, null]
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
      theirs.value = isRefusal(error, 'conflict') ? (error.details['task'] as WholeTask) : null
    }
  }
  const takeTheirs = (now: WholeTask) => {
    ;[base.value, draft.value, theirs.value, refusal.value] = [now, draftOf(now), null, null]
  }
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault()
        void save(base.value)
      }}
    >
      {theirs.value ? (
        <Conflict
          mine={draft.value}
          base={base.value}
          theirs={theirs.value}
          keepMine={() => void save(theirs.value!)}
          takeTheirs={() => takeTheirs(theirs.value!)}
        />
      ) : (
        <Trouble refusal={refusal.value} />
      )}
      <Inputs draft={draft} />
      <div class="buttons">
        <button type="submit" class="button is-primary">
          Save
        </button>
        <span class="dim number">on version {base.value.version}</span>
      </div>
    </form>
  )
}

const NAMES: [keyof Draft, string][] = [
  ['title', 'Title'],
  ['project', 'Project'],
  ['priority', 'Priority, 0 to 9'],
  ['labels', 'Labels, with commas between them'],
]

function Inputs({ draft }: { draft: { value: Draft } }) {
  const set = (key: keyof Draft, text: string) => (draft.value = { ...draft.value, [key]: text })
  return (
    <>
      {NAMES.map(([key, label]) => (
        <label key={key} class="field">
          <span>{label}</span>
          <input
            value={draft.value[key]}
            onInput={(event) => set(key, event.currentTarget.value)}
          />
        </label>
      ))}
      <label class="field">
        <span>Body</span>
        <textarea
          rows={12}
          value={draft.value.body}
          onInput={(event) => set('body', event.currentTarget.value)}
        />
      </label>
    </>
  )
}

interface ConflictProps {
  mine: Draft
  base: WholeTask
  theirs: WholeTask
  keepMine: () => void
  takeTheirs: () => void
}

/** Both sides of every field that differs, and a choice; nothing is overwritten unseen. */
function Conflict({ mine, base, theirs, keepMine, takeTheirs }: ConflictProps) {
  const now = draftOf(theirs)
  const was = draftOf(base)
  const keys = (Object.keys(mine) as (keyof Draft)[]).filter((key) => now[key] !== was[key])
  return (
    <div class="conflict" role="alert">
      <strong>Somebody changed this task while you were editing</strong>
      <p>
        You began with version {base.version}; it is version {theirs.version} now. Nothing of yours
        was saved yet.
      </p>
      {keys.map((key) => (
        <div key={key} class="sides">
          <div>
            <h4>Theirs: {key}</h4>
            <pre class="body">{now[key]}</pre>
          </div>
          <div>
            <h4>Yours: {key}</h4>
            <pre class="body">{mine[key]}</pre>
          </div>
        </div>
      ))}
      <div class="buttons">
        <Button kind="primary" act={keepMine}>
          Put my changes on version {theirs.version}
        </Button>
        <Button act={takeTheirs}>Drop mine, take theirs</Button>
      </div>
    </div>
  )
}
