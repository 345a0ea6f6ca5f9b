import { aboutMemory, noteResource, NoteSheet, notesLike, NOTES_MAX } from '../resources/note.tsx'
import { useAnswer, useAsked, useCalm } from '../data/asked.ts'
import { Answered, Page, Tabs } from '../parts/frame.tsx'
import { Listing } from '../parts/list.tsx'
import { adjust, opened, param, route, wanted } from '../route.ts'
import { Conflicts, Duplicates } from './alike.tsx'

const tab = param<'notes' | 'conflicts' | 'duplicates'>('tab', 'notes')

/** What agents keep for each other: notes, those that disagree, and those that say the same. */
export function Knowledge() {
  const conflicts = useAnswer('conflict.list', { limit: 1000 }, aboutMemory)
  const open = conflicts.value?.items.length ?? 0
  return (
    <Page title="Knowledge" class="is-full">
      <Tabs
        label="What"
        tabs={{
          notes: 'Notes',
          conflicts: open === 0 ? 'Conflicts' : `Conflicts (${open})`,
          duplicates: 'Duplicates',
        }}
        chosen={tab.value}
        choose={(to) => adjust({ tab: to, id: null, scope: null })}
      />
      {tab.value === 'conflicts' ? (
        <Answered of={conflicts}>{({ items }) => <Conflicts items={items} />}</Answered>
      ) : tab.value === 'duplicates' ? (
        <Duplicates />
      ) : (
        <Notes />
      )}
    </Page>
  )
}

/** Found by their words and their meaning, so it is the server that searches. */
function Notes() {
  const text = useCalm(wanted.value.trim())
  const asked = useAsked(`notes ${text}`, (signal) => notesLike(text, signal), aboutMemory)
  const scope = route.value.params.get('scope')
  return (
    <Answered of={asked}>
      {(items) => (
        <Listing
          of={noteResource}
          items={items}
          open={`${scope} ${opened()}`}
          {...(items.length >= NOTES_MAX && {
            says: `The first ${items.length} notes; a search looks through all`,
          })}
          sheet={(key) =>
            scope !== null && <NoteSheet key={`${scope} ${key}`} scope={scope} of={key} />
          }
        />
      )}
    </Answered>
  )
}
