import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { deleteNote, editNote } from '../actions.ts'
import { ask, clock } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { now, useAnswer } from '../data/asked.ts'
import { Tag } from '../parts/badge.tsx'
import { Opens } from '../parts/opens.tsx'
import type { PageNoun } from '../parts/resource.ts'
import { Section, Sheet } from '../parts/sheet.tsx'
import { ago, dayOf } from '../parts/words.ts'

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
  textOf: ({ key }) => key,
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
    {
      name: 'Scope',
      width: 'minmax(5rem, 0.8fr)',
      order: ({ scope }) => scope,
      show: ({ scope }) => <span class="dim">{scope}</span>,
    },
    {
      name: 'What fits',
      width: 'minmax(6rem, 2fr)',
      wide: true,
      show: ({ says, tags, conflict }) => (
        <>
          {conflict && <Tag tone="is-bad">conflict</Tag>}
          {tags.slice(0, 3).map((tag) => (
            <Tag key={tag}>{tag}</Tag>
          ))}
          <span class="dim">{says}</span>
        </>
      ),
    },
    {
      name: 'By',
      width: 'minmax(5rem, 0.8fr)',
      order: ({ author }) => author,
      show: ({ author, version }) => (
        <span class="dim">
          {author}, version {version}
        </span>
      ),
    },
    {
      name: 'Written',
      width: '6rem',
      order: ({ at }) => at,
      show: ({ at }) => <span class="dim number">{ago(at, now.value)}</span>,
    },
  ],
}

/** One note: what it says now, and every version before. */
export function NoteSheet({ scope, of: key }: { scope: string; of: string }) {
  const chosen = useSignal<number | null>(null)
  const history = useAnswer('memory.history', { scope, key, limit: 200 }, { affects: aboutMemory })
  const version = chosen.value
  const asked = useAnswer(
    'memory.get',
    { scope, key, ...(version !== null && { version }) },
    { affects: aboutMemory },
  )
  const note = asked.value.value
  return (
    <Sheet
      label={`Note ${key}`}
      title={key}
      refusal={asked.refusal.value}
      isLoading={!note}
      first={
        note && (
          <>
            <p class="dim">
              {scope}, version {note.version} by {note.author}, {dayOf(note.created_at)}
            </p>
            <pre class="body">{note.content ?? '(no text is kept of this version)'}</pre>
          </>
        )
      }
      {...(note &&
        version === null && {
          acts: [
            { says: 'Edit', act: () => editNote(note) },
            { says: 'Delete note', kind: 'danger-quiet', act: () => deleteNote(note) },
          ],
        })}
    >
      <Section title="History">
        <ol class="choices">
          {history.value.value?.items.map((each) => (
            <VersionRow
              key={each.version}
              of={each}
              isOpen={each.version === note?.version}
              open={() => (chosen.value = each.version)}
            />
          ))}
        </ol>
      </Section>
    </Sheet>
  )
}

interface VersionProps {
  of: AnswerOf<'memory.history'>['items'][number]
  isOpen: boolean
  open: () => void
}

const VersionRow = ({ of, isOpen, open }: VersionProps) => (
  <li>
    <button type="button" class="choice" aria-pressed={isOpen} onClick={open}>
      <span class="id">{of.version}</span>
      <span>
        {of.kind}
        {of.strategy && ` (${of.strategy})`} by {of.author}
      </span>
      <span class="dim">
        {dayOf(of.created_at)}
        {of.head && ', current'}
      </span>
    </button>
  </li>
)
