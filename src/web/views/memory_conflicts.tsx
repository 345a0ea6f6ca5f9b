import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import type { showConflictWhole } from '../../operations/memory_show.ts'
import { ask, change } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import { Button } from '../parts/buttons.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { ago } from '../parts/words.ts'
import { adjust, route } from '../route.ts'
import { mayWork } from '../session.ts'

type Conflict = AnswerOf<'conflict.list'>['items'][number]
type WholeConflict = ReturnType<typeof showConflictWhole>

/** Notes that disagree, both sides beside each other, with an editor for a third. */
export function MemoryConflicts({ items }: { items: Conflict[] }) {
  const id = route.value.params.get('id') ?? items[0]?.id
  if (items.length === 0) {
    return (
      <Empty title="No notes disagree" command="leasehold memory conflicts">
        When two agents write different things under one key, both are kept and shown here.
      </Empty>
    )
  }
  return (
    <div class="conflicts pad-top">
      <ul class="panel rows" aria-label="Open conflicts">
        {items.map((each) => (
          <li key={each.id} class={`row note ${each.id === id ? 'is-open' : ''}`}>
            <button type="button" class="row-button" onClick={() => adjust({ id: each.id })}>
              <strong>{each.key}</strong>
              <span class="dim">
                {each.scope}, by {each.opened_by}, {ago(each.opened_at, now.value)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {id !== undefined && <OneConflict key={id} id={id} />}
    </div>
  )
}

function OneConflict({ id }: { id: string }) {
  const asked = useAsked(id, () => ask('conflict.list', { id }), { affects: aboutMemory })
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
  const { version, author, content, confidence } = conflict.sides[name]
  return (
    <div>
      <h3>{says}</h3>
      <p class="dim">
        version {version} by {author}
        {confidence !== null && `, confidence ${confidence}`}
      </p>
      <pre class="body">{content ?? '(deleted)'}</pre>
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
