import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask, change, clock } from '../ask.ts'
import { aboutAny, useAnswer } from '../data/asked.ts'
import { type Act, Acts, does } from '../parts/acts.tsx'
import { Answered, Section, Sheet } from '../parts/frame.tsx'
import { Opens } from '../parts/links.tsx'
import { dim, type PageNoun, since } from '../parts/noun.tsx'
import { dayOf } from '../parts/words.ts'
import { wanted } from '../route.ts'

export const aboutMemory = { affects: aboutAny('memory', 'duplicate') }
export const NOTES_MAX = 1_000
const FOUND_MAX = 50

/** A note as a list shows it; from a search, with the part of it that fits. */
export interface ListedNote {
  scope: string
  key: string
  author: string
  tags: string[]
  version: number
  says: string
  at: string
  conflict: boolean
}

export async function notesLike(text: string, signal: AbortSignal): Promise<ListedNote[]> {
  if (text === '') {
    const { items } = await ask('memory.list', { limit: NOTES_MAX }, signal)
    return items.map((item) => Object.assign(item, { says: '', at: item.updated_at }))
  }
  const { items } = await ask('memory.search', { query: text, limit: FOUND_MAX }, signal)
  return items.map((item) =>
    Object.assign(item, {
      says: item.excerpt,
      conflict: item.disputed,
      at: new Date(clock() - item.age_seconds * 1000).toISOString(),
    }),
  )
}

export const noteResource: PageNoun<ListedNote> = {
  one: 'note',
  keyOf: ({ scope, key }) => `${scope} ${key}`,
  // What the server found fits.
  textOf: () => wanted.value,
  none: ['No note', 'Agents keep here what others should know; nothing is overwritten silently.'],
  filters: [{ name: 'scope', of: ({ scope }) => scope }],
  columns: [
    {
      name: 'Note',
      width: 'minmax(9rem, 1.4fr)',
      order: ({ key }) => key,
      show: ({ key, scope }) => (
        <Opens id={key} more={{ scope }}>
          {key}
        </Opens>
      ),
    },
    dim({ name: 'Scope', width: 'minmax(5rem, 0.8fr)' }, ({ scope }) => scope),
    {
      name: 'What fits',
      width: 'minmax(6rem, 2fr)',
      wide: true,
      show: ({ says, tags, conflict }) => (
        <>
          {conflict && <span class="tag is-bad">conflict</span>}
          {tags.slice(0, 3).map((tag) => (
            <span key={tag} class="tag">
              {tag}
            </span>
          ))}
          <span class="dim">{says}</span>
        </>
      ),
    },
    dim({ name: 'By', width: 'minmax(5rem, 0.8fr)' }, ({ author, version }) => {
      return `${author}, version ${version}`
    }),
    since({ name: 'Written', width: '6rem' }, ({ at }) => at),
  ],
}

type WholeNote = AnswerOf<'memory.get'>

const actsOn = ({ scope, key, version, content }: WholeNote): Act[] => [
  {
    says: 'Edit',
    label: `Edit ${key}`,
    verb: 'Save note',
    will: [`It becomes a new version, based on version ${version}.`],
    fields: [{ label: 'What it says', initial: content ?? '', type: 'long' }],
    run: async (said = '') => {
      const put = await change('memory.put', { scope, key, content: said, based_on: version })
      return put.conflict ? `${key} disagrees with a newer version` : `${key} was saved`
    },
  },
  {
    says: 'Delete note',
    label: `Delete note ${key}`,
    kind: 'danger',
    will: [`${key} in ${scope} is deleted; its history stays until it is pruned.`],
    run: does('memory.delete', { scope, key, based_on: version }, `${key} was deleted`),
  },
]

/** One note: what it says now, and every version before. */
export function NoteSheet({ scope, of: key }: { scope: string; of: string }) {
  const chosen = useSignal<number | null>(null)
  const history = useAnswer('memory.history', { scope, key, limit: 200 }, aboutMemory)
  const version = chosen.value
  const of = { scope, key, ...(version !== null && { version }) }
  const asked = useAnswer('memory.get', of, aboutMemory)
  return (
    <Sheet label={`Note ${key}`} title={key}>
      <Answered of={asked}>
        {(note) => (
          <>
            <p class="dim">
              {scope}, version {note.version} by {note.author}, {dayOf(note.created_at)}
            </p>
            <pre class="body">{note.content ?? '(no text is kept of this version)'}</pre>
            {version === null && <Acts of={actsOn(note)} />}
          </>
        )}
      </Answered>
      <Section title="History">
        <ol class="choices">
          {history.value?.items.map((each) => (
            <li key={each.version}>
              <button
                type="button"
                class="choice"
                aria-pressed={each.version === asked.value?.version}
                onClick={() => (chosen.value = each.version)}
              >
                <span class="id">{each.version}</span>
                <span>
                  {each.kind}
                  {each.strategy && ` (${each.strategy})`} by {each.author}
                </span>
                <span class="dim">
                  {dayOf(each.created_at)}
                  {each.head && ', current'}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </Section>
    </Sheet>
  )
}
