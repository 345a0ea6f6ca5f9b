import { useSignal } from '@preact/signals'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { change } from '../ask.ts'
import { projectsKnown, type WholeTask } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { Button } from '../parts/buttons.tsx'
import { DialogField, type FieldLook } from '../parts/dialog.tsx'
import { Trouble } from '../parts/empty.tsx'
import { toast } from '../parts/toast.tsx'

/** What may be changed here, as text. */
const FIELDS = {
  title: { label: 'Title' },
  project: { label: 'Project' },
  priority: { label: 'Priority, 0 to 9', type: 'number' },
  labels: { label: 'Labels, with commas between them' },
  body: { label: 'Body', type: 'long' },
} satisfies Record<string, FieldLook>
type Draft = Record<keyof typeof FIELDS, string>
const KEYS = Object.keys(FIELDS) as (keyof Draft)[]

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
  const projects = useAsked('projects', projectsKnown).value.value ?? []
  const begin = (from: WholeTask) => {
    ;[base.value, draft.value, theirs.value, refusal.value] = [from, draftOf(from), null, null]
  }
  const save = async (onto: WholeTask) => {
    const changes = changesIn(draft.value, draftOf(base.value))
    try {
      const saved = await change('task.update', { id: task.id, version: onto.version, ...changes })
      toast(`Task ${task.id} is now version ${saved.version}`)
      begin(saved)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
      theirs.value = isRefusal(error, 'conflict') ? (error.details['task'] as WholeTask) : null
    }
  }
  const now = theirs.value
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault()
        void save(base.value)
      }}
    >
      {now ? (
        <Conflict
          {...{ mine: draft.value, base: base.value, theirs: now }}
          keepMine={() => void save(now)}
          takeTheirs={() => begin(now)}
        />
      ) : (
        <Trouble refusal={refusal.value} />
      )}
      {KEYS.map((key) => (
        <DialogField
          key={key}
          field={{ ...FIELDS[key], ...(key === 'project' && { choices: ['', ...projects] }) }}
          value={draft.value[key]}
          change={(text) => (draft.value = { ...draft.value, [key]: text })}
        />
      ))}
      <div class="buttons">
        <button type="submit" class="button is-primary">
          Save
        </button>
        <span class="dim number">on version {base.value.version}</span>
      </div>
    </form>
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
  const [now, was] = [draftOf(theirs), draftOf(base)]
  return (
    <div class="trouble" role="alert">
      <strong>Somebody changed this task while you were editing</strong>
      <p>
        You began with version {base.version}; it is version {theirs.version} now. Nothing of yours
        was saved yet.
      </p>
      {KEYS.filter((key) => now[key] !== was[key]).map((key) => (
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
