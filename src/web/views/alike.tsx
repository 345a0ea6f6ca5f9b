import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import type { showConflictWhole } from '../../operations/memory_show.ts'
import { ask } from '../ask.ts'
import { now, useAnswer, useAsked } from '../data/asked.ts'
import { type Act, Acts, Button, confirm, does } from '../parts/acts.tsx'
import { Sides } from '../parts/compared.tsx'
import { Answered, Empty, Panel } from '../parts/frame.tsx'
import { ago, percent } from '../parts/words.ts'
import { aboutMemory } from '../resources/note.tsx'
import { hrefOf } from '../route.ts'
import { mayWork } from '../session.ts'

/** Notes beside each other: those that disagree, and those that say much the same. */

type Conflict = AnswerOf<'conflict.list'>['items'][number]
type WholeConflict = ReturnType<typeof showConflictWhole>
type Pair = AnswerOf<'duplicate.list'>['items'][number]

/** Those that follow come when these are settled. */
const SHOWN_MAX = 20

export const Conflicts = ({ items }: { items: Conflict[] }) => (
  <div class="stack scrolls">
    {items.length === 0 && (
      <Empty title="No notes disagree">
        When two agents write different things under one key, both are kept and shown here.
      </Empty>
    )}
    {items.slice(0, SHOWN_MAX).map(({ id }) => (
      <OneConflict key={id} id={id} />
    ))}
    {items.length > SHOWN_MAX && <p class="dim">and {items.length - SHOWN_MAX} more</p>}
  </div>
)

function OneConflict({ id }: { id: string }) {
  const { value } = useAnswer('conflict.list', { id }, aboutMemory)
  const conflict = value?.items[0] as WholeConflict | undefined
  if (!conflict) return null
  const { key, scope, why, sides, opened_by, opened_at, status } = conflict
  const unmerged = why ? `; not merged by itself: ${why}` : ''
  const isOpen = status === 'open'
  const head = (name: 'ours' | 'theirs', says: string) => {
    const { version, author, confidence } = sides[name]
    const sure = confidence === null ? '' : `, confidence ${confidence}`
    return <h3>{`${says}: version ${version} by ${author}${sure}`}</h3>
  }
  return (
    <Panel title={key} aside={`${scope}, by ${opened_by}, ${ago(opened_at, now.value)}${unmerged}`}>
      <Sides
        heads={[head('ours', 'What was there'), head('theirs', 'What came')]}
        texts={[sides.ours.content, sides.theirs.content]}
        acts={isOpen ? [takes(conflict, 'ours'), takes(conflict, 'theirs')] : []}
      />
      {mayWork() && isOpen && <Merge conflict={conflict} />}
    </Panel>
  )
}

type Way = { choose: 'ours' | 'theirs' } | { content: string }

const resolves = (says: string, { id, key }: WholeConflict, way: Way, will: string[]): Act => ({
  says,
  verb: 'Resolve',
  will,
  run: does('conflict.resolve', { id, ...way }, `${key} is resolved`),
})

function takes(conflict: WholeConflict, choose: 'ours' | 'theirs'): Act {
  const { version, author } = conflict.sides[choose]
  const note = `The note says what version ${version} by ${author} says.`
  return resolves('Take this side', conflict, { choose }, [
    note,
    'The other side stays in its history.',
  ])
}

/** The lines around what a draft could not merge. */
const MARKS = /^(?:<{7}|>{7}) /m

function Merge({ conflict }: { conflict: WholeConflict }) {
  const text = useSignal(conflict.draft ?? '')
  const will = ['The note says what you have written.', 'Both sides stay in its history.']
  const isUnmerged = MARKS.test(text.value)
  return (
    <div class="stack pad">
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
          act={() =>
            confirm(resolves(`Resolve ${conflict.key}`, conflict, { content: text.value }, will))
          }
        >
          Resolve with this text
        </Button>
      </div>
    </div>
  )
}

export function Duplicates() {
  const asked = useAnswer('duplicate.list', { limit: SHOWN_MAX }, aboutMemory)
  return (
    <div class="stack scrolls">
      <Answered of={asked}>
        {({ items, next }) => (
          <>
            {items.length === 0 && (
              <Empty title="No two notes say the same">
                Notes are compared by meaning in the background; pairs that are alike show up here.
              </Empty>
            )}
            {items.map((pair) => (
              <OnePair key={pair.id} pair={pair} />
            ))}
            {next !== null && <p class="dim">There are more, which are less alike.</p>}
          </>
        )}
      </Answered>
    </div>
  )
}

/** Whole, as it is compared: an excerpt may leave out where two differ. */
async function textOf(side: Pair['a'], signal: AbortSignal) {
  return side && (await ask('memory.get', { scope: side.scope, key: side.key }, signal)).content
}

function OnePair({ pair }: { pair: Pair }) {
  const { id, a, b, similarity, label } = pair
  const texts = useAsked(
    id,
    (signal) => Promise.all([textOf(a, signal), textOf(b, signal)]),
    aboutMemory,
  )
  const head = (side: Pair['a']) =>
    side && (
      <h3>
        <a href={hrefOf('knowledge', { scope: side.scope, id: side.key })}>{side.key}</a>,{' '}
        {side.scope}, by {side.author}, {ago(side.updated_at, now.value)}
      </h3>
    )
  return (
    <Panel
      title={`${percent(similarity)} alike in meaning${label ? `: ${label}` : ''}`}
      aside={<Acts of={[settles(id, 'keep_both', null)]} />}
    >
      <Answered of={texts}>
        {(both) => (
          <Sides
            heads={[head(a), head(b)]}
            texts={both}
            acts={a && b ? [settles(id, 'delete_a', a), settles(id, 'delete_b', b)] : []}
          />
        )}
      </Answered>
    </Panel>
  )
}

type Settling = 'keep_both' | 'delete_a' | 'delete_b'

const settles = (id: string, action: Settling, gone: Pair['a']): Act => ({
  says: gone ? 'Delete this one' : 'Keep both',
  ...(gone && { kind: 'danger' }),
  will: gone
    ? [`${gone.key} in ${gone.scope} is deleted; its history stays until it is pruned.`]
    : ['Both stay as they are, and are not proposed again.'],
  run: does(
    'duplicate.resolve',
    { id, action },
    gone ? `${gone.key} was deleted` : 'Both were kept',
  ),
})
