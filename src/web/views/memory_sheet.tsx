import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { deleteNote, editNote } from '../actions.ts'
import { Button, IconButton } from '../parts/buttons.tsx'
import { Trouble } from '../parts/empty.tsx'
import { dayOf } from '../parts/words.ts'
import { adjust } from '../route.ts'
import { mayWork } from '../session.ts'

type Version = AnswerOf<'memory.history'>['items'][number]

/** One note: what it says now, and every version before. */
export function MemorySheet({ scope, of: key }: { scope: string; of: string }) {
  const chosen = useSignal<number | null>(null)
  const history = useAsked('history', () => ask('memory.history', { scope, key, limit: 200 }), {
    affects: aboutMemory,
  })
  const version = chosen.value
  const note = useAsked(
    `note ${version}`,
    () => ask('memory.get', { scope, key, ...(version !== null && { version }) }),
    { affects: aboutMemory },
  )
  const shown = note.value.value
  return (
    <aside class="panel sheet" aria-label={`Note ${key}`}>
      <header class="panel-head">
        <h2>{key}</h2>
        <IconButton icon="close" label="Close" act={() => adjust({ id: null, scope: null })} />
      </header>
      <Trouble refusal={note.refusal.value} />
      {shown && (
        <>
          <p class="dim">
            {scope}, version {shown.version} by {shown.author}, {dayOf(shown.created_at)}
          </p>
          <pre class="body">{shown.content ?? '(no text is kept of this version)'}</pre>
          {mayWork() && version === null && (
            <div class="buttons">
              <Button act={() => editNote(shown)}>Edit</Button>
              <Button kind="danger-quiet" act={() => deleteNote(shown)}>
                Delete note
              </Button>
            </div>
          )}
        </>
      )}
      <h3>History</h3>
      <ol class="versions">
        {history.value.value?.items.map((each) => (
          <VersionRow
            key={each.version}
            version={each}
            isOpen={each.version === shown?.version}
            open={() => (chosen.value = each.version)}
          />
        ))}
      </ol>
    </aside>
  )
}

interface VersionRowProps {
  version: Version
  isOpen: boolean
  open: () => void
}

function VersionRow({ version, isOpen, open }: VersionRowProps) {
  const { kind, author, created_at, head, strategy } = version
  return (
    <li>
      <button type="button" class="run" aria-pressed={isOpen} onClick={open}>
        <span class="id">{version.version}</span>
        <span>
          {kind}
          {strategy && ` (${strategy})`} by {author}
        </span>
        <span class="dim">
          {dayOf(created_at)}
          {head && ', current'}
        </span>
      </button>
    </li>
  )
}
