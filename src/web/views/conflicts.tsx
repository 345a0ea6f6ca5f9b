import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import type { showConflictWhole } from '../../operations/memory_show.ts'
import { change } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { now, useAnswer } from '../data/asked.ts'
import { Button } from '../parts/buttons.tsx'
import { Compared } from '../parts/compared.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { ago } from '../parts/words.ts'
import { adjust, route } from '../route.ts'
import { mayWork } from '../session.ts'

type Conflict = AnswerOf<'conflict.list'>['items'][number]
type WholeConflict = ReturnType<typeof showConflictWhole>

/** Notes that disagree, both sides beside each other, with an editor for a third. */
export function Conflicts({ items }: { items: Conflict[] }) {
  const id = route.value.params.get('id') ?? items[0]?.id
  if (items.length === 0) {
    return (
      <Empty title="No notes disagree">
        When two agents write different things under one key, both are kept and shown here.
      </Empty>
    )
  }
  return (
    <div class="conflicts">
      <ul class="panel choices" aria-label="Open conflicts">
        {notesIn(items).map(([first, ...others]) => {
          const isOpen = [first, ...others].some((each) => each.id === id)
          return (
            <li key={first.id}>
              <button
                type="button"
                class="choice"
                aria-pressed={isOpen}
                onClick={() => adjust({ id: first.id })}
              >
                <strong>{first.key}</strong>
                <span class="dim">
                  {first.scope}, by {first.opened_by}, {ago(first.opened_at, now.value)}
                  {others.length > 0 && `, and ${others.length} more`}
                </span>
              </button>
            </li>
          )
        })}
      </ul>
      {id !== undefined && <OneConflict key={id} id={id} />}
    </div>
  )
}

/** One entry for each note, however many of its versions disagree. */
function notesIn(items: Conflict[]): [Conflict, ...Conflict[]][] {
  const notes = new Map<string, [Conflict, ...Conflict[]]>()
  for (const each of items) {
    const name = `${each.scope}\n${each.key}`
    const known = notes.get(name)
    if (known) known.push(each)
    else notes.set(name, [each])
  }
  return [...notes.values()]
}

function OneConflict({ id }: { id: string }) {
  const asked = useAnswer('conflict.list', { id }, { affects: aboutMemory })
  const conflict = asked.value.value?.items[0] as WholeConflict | undefined
  return (
    <section class="panel conflict-sheet" aria-label="Both sides">
      <Trouble refusal={asked.refusal.value} />
      {conflict && (
        <>
          <header class="panel-head">
            <h2>{conflict.key}</h2>
            {conflict.why && <span class="dim">not merged by itself: {conflict.why}</span>}
          </header>
          <div class="sides">
            <Side conflict={conflict} name="ours" says="What was there" />
            <Side conflict={conflict} name="theirs" says="What came" />
          </div>
          {mayWork() && conflict.status === 'open' && <Merge conflict={conflict} />}
        </>
      )}
    </section>
  )
}

interface SideProps {
  conflict: WholeConflict
  name: 'ours' | 'theirs'
  says: string
}

function Side({ conflict, name, says }: SideProps) {
  const { ours, theirs } = conflict.sides
  const { version, author, content, confidence } = conflict.sides[name]
  return (
    <div>
      <h3>{says}</h3>
      <p class="dim">
        version {version} by {author}
        {confidence !== null && `, confidence ${confidence}`}
      </p>
      {content === null ? (
        <pre class="body">(deleted)</pre>
      ) : (
        <Compared ours={ours.content ?? ''} theirs={theirs.content ?? ''} side={name} />
      )}
      {mayWork() && conflict.status === 'open' && (
        <Button act={() => choose(conflict, name)}>Take this side</Button>
      )}
    </div>
  )
}

type Way = { choose: 'ours' | 'theirs' } | { content: string }

function resolve({ id, key }: WholeConflict, says: string[], way: Way): void {
  confirm({
    title: `Resolve ${key}?`,
    says,
    verb: 'Resolve',
    run: async () => {
      await change('conflict.resolve', { id, ...way })
      // The next one that is open takes its place.
      adjust({ id: null })
      return `${key} is resolved`
    },
  })
}

function choose(conflict: WholeConflict, name: 'ours' | 'theirs'): void {
  const { version, author } = conflict.sides[name]
  const note = `The note says what version ${version} by ${author} says.`
  resolve(conflict, [note, 'The other side stays in its history.'], { choose: name })
}

/** The lines around what a draft could not merge. */
const MARKS = /^(?:<{7}|>{7}) /m

function Merge({ conflict }: { conflict: WholeConflict }) {
  const text = useSignal(conflict.draft ?? '')
  const says = ['The note says what you have written.', 'Both sides stay in its history.']
  const isUnmerged = MARKS.test(text.value)
  return (
    <div class="merge">
      <label class="field">
        <span>Or write what should stand</span>
        <textarea
          rows={8}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      {isUnmerged && (
        <p class="dim" role="status">
          Both sides stand between the lines of {'<<<<<<<'} and {'>>>>>>>'}: write what should stay
          there, and take those lines away.
        </p>
      )}
      <div class="buttons">
        <Button
          kind="primary"
          disabled={isUnmerged}
          act={() => resolve(conflict, says, { content: text.value })}
        >
          Resolve with this text
        </Button>
      </div>
    </div>
  )
}
