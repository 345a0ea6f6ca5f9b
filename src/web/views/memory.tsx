import type { AnswerOf } from '../../operations/registry.ts'
import { ask, clock } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { now, useAsked, useCalm } from '../data/asked.ts'
import { Tag } from '../parts/badge.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Search, Tabs } from '../parts/frame.tsx'
import { ago } from '../parts/words.ts'
import { adjust, route, wanted } from '../route.ts'
import { Duplicates } from './duplicates.tsx'
import { MemoryConflicts } from './memory_conflicts.tsx'
import { MemorySheet } from './memory_sheet.tsx'

const TABS = { notes: 'Notes', conflicts: 'Conflicts', duplicates: 'Duplicates' }
type Tab = keyof typeof TABS

export function Memory() {
  const { params } = route.value
  const tab = (params.get('tab') ?? 'notes') as Tab
  const conflicts = useAsked('conflicts', () => ask('conflict.list', { limit: 1000 }), {
    affects: aboutMemory,
  })
  const calm = useCalm(wanted.value.trim())
  const known = conflicts.value.value
  const open = known?.items.length ?? 0
  const tabs = { ...TABS, conflicts: open === 0 ? 'Conflicts' : `Conflicts (${open})` }
  return (
    <Page title="Memory" class="is-full" aside={<Search label="Search notes" text={wanted} />}>
      <Tabs
        label="Memory"
        tabs={tabs}
        chosen={tab}
        choose={(key) => adjust({ tab: key, id: null, scope: null })}
      />
      <Trouble refusal={conflicts.refusal.value} />
      {tab === 'notes' && <Notes text={calm} />}
      {tab === 'conflicts' && known && <MemoryConflicts items={known.items} />}
      {tab === 'conflicts' && !known && !conflicts.refusal.value && <Loading />}
      {tab === 'duplicates' && <Duplicates />}
    </Page>
  )
}

const LISTED_MAX = 1_000

type Item = AnswerOf<'memory.list'>['items'][number]

/** A note as a list shows it; from a search, with the place that fits. */
type Found = Pick<Item, 'scope' | 'key' | 'author' | 'tags' | 'version'> & {
  says: string
  at: string
  conflict: boolean
}

async function notesLike(text: string): Promise<Found[]> {
  if (text === '') {
    const { items } = await ask('memory.list', { limit: LISTED_MAX })
    return items.map((item) => Object.assign(item, { says: '', at: item.updated_at }))
  }
  const { items } = await ask('memory.search', { query: text, limit: 50 })
  return items.map((item) =>
    Object.assign(item, {
      says: item.excerpt,
      conflict: item.disputed,
      at: new Date(clock() - item.age_seconds * 1000).toISOString(),
    }),
  )
}

function Notes({ text }: { text: string }) {
  const asked = useAsked(`notes ${text}`, () => notesLike(text), { affects: aboutMemory })
  const { params } = route.value
  const [scope, key] = [params.get('scope'), params.get('id')]
  const items = asked.value.value ?? []
  if (asked.refusal.value) return <Trouble refusal={asked.refusal.value} />
  if (!asked.value.value) return <Loading />
  if (items.length === 0 && text !== '') {
    return <Empty title="No note fits">Notes are found by their words and by their meaning.</Empty>
  }
  if (items.length === 0) {
    return (
      <Empty title="No note yet" command='leasehold memory put build.command "npm run build"'>
        Agents keep here what others should know; nothing is overwritten silently.
      </Empty>
    )
  }
  return (
    <>
      {items.length >= LISTED_MAX && (
        <p class="dim">
          The first {items.length.toLocaleString()} notes; a search looks through all.
        </p>
      )}
      <div class="split pad-top">
        <ul class="panel rows is-list scrolls" tabIndex={0} aria-label="Notes">
          {items.map((item) => (
            <NoteRow key={`${item.scope} ${item.key}`} item={item} isOpen={item.key === key} />
          ))}
        </ul>
        {key !== null && scope !== null && (
          <MemorySheet key={`${scope} ${key}`} scope={scope} of={key} />
        )}
      </div>
    </>
  )
}

function NoteRow({ item, isOpen }: { item: Found; isOpen: boolean }) {
  const { scope, key, author, version, says, at, tags, conflict } = item
  return (
    <li class={`row note ${isOpen ? 'is-open' : ''}`}>
      <button type="button" class="row-button" onClick={() => adjust({ scope, id: key })}>
        <strong>{key}</strong>
        <span class="dim">
          {scope}, version {version} by {author}, {ago(at, now.value)}
        </span>
        {says && <span class="dim">{says}</span>}
      </button>
      {conflict && <Tag tone="is-bad">conflict</Tag>}
      {tags.slice(0, 3).map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </li>
  )
}
