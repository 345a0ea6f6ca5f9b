import type { AnswerOf } from '../../operations/registry.ts'
import { ask, change } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { now, useAnswer, useAsked } from '../data/asked.ts'
import { Button } from '../parts/buttons.tsx'
import { Compared } from '../parts/compared.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { ago } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { mayWork } from '../session.ts'

type Pair = AnswerOf<'duplicate.list'>['items'][number]
type Action = 'keep_both' | 'delete_a' | 'delete_b'

/** Notes that say much the same: one of them is often enough. */
export function Duplicates() {
  const asked = useAnswer('duplicate.list', { limit: 200 }, { affects: aboutMemory })
  const pairs = asked.value.value?.items ?? []
  return (
    <div class="stack scrolls">
      <Trouble refusal={asked.refusal.value} />
      {!asked.value.value && !asked.refusal.value && <Loading />}
      {asked.value.value && pairs.length === 0 && (
        <Empty title="No two notes say the same">
          Notes are compared by meaning in the background; pairs that are alike show up here.
        </Empty>
      )}
      {asked.value.value?.next && (
        <p class="dim">
          The {pairs.length} most alike; those that follow come when these are settled.
        </p>
      )}
      {pairs.map((pair) => (
        <PairSheet key={pair.id} pair={pair} />
      ))}
    </div>
  )
}

/** Both notes whole, as they are compared: an excerpt may leave out where they differ. */
async function textsOf({ a, b }: Pair): Promise<Record<'a' | 'b', string | null>> {
  const textOf = async (side: Pair['a']) => {
    if (!side) return null
    return (await ask('memory.get', { scope: side.scope, key: side.key })).content
  }
  const [first, second] = await Promise.all([textOf(a), textOf(b)])
  return { a: first, b: second }
}

function PairSheet({ pair }: { pair: Pair }) {
  const texts = useAsked(pair.id, () => textsOf(pair), { affects: aboutMemory })
  return (
    <section class="panel conflict-sheet" aria-label="Two notes that are alike">
      <header class="panel-head">
        <h2>
          {Math.round(pair.similarity * 100)} % alike in meaning{pair.label && `: ${pair.label}`}
        </h2>
        {mayWork() && <Button act={() => settle(pair, 'keep_both')}>Keep both</Button>}
      </header>
      <Trouble refusal={texts.refusal.value} />
      <div class="sides">
        <PairSide pair={pair} name="a" texts={texts.value.value} />
        <PairSide pair={pair} name="b" texts={texts.value.value} />
      </div>
    </section>
  )
}

interface PairSideProps {
  pair: Pair
  name: 'a' | 'b'
  texts: Record<'a' | 'b', string | null> | undefined
}

function PairSide({ pair, name, texts }: PairSideProps) {
  const side = pair[name]
  if (!side) return <p class="dim">It is gone.</p>
  return (
    <div>
      <h3>
        <a href={hrefOf('knowledge', { scope: side.scope, id: side.key })}>{side.key}</a>,{' '}
        {side.scope}, by {side.author}, {ago(side.updated_at, now.value)}
      </h3>
      {texts && (
        <Compared
          ours={texts.a ?? ''}
          theirs={texts.b ?? ''}
          side={name === 'a' ? 'ours' : 'theirs'}
        />
      )}
      {mayWork() && (
        <Button
          kind="danger-quiet"
          act={() => settle(pair, name === 'a' ? 'delete_a' : 'delete_b')}
        >
          Delete this one
        </Button>
      )}
    </div>
  )
}

function settle(pair: Pair, action: Action): void {
  const gone = action === 'keep_both' ? null : action === 'delete_a' ? pair.a : pair.b
  confirm({
    title: gone ? `Delete ${gone.key}?` : 'Keep both notes?',
    says: gone
      ? [`${gone.key} in ${gone.scope} is deleted; its history stays until it is pruned.`]
      : ['Both stay as they are, and are not proposed again.'],
    verb: gone ? 'Delete note' : 'Keep both',
    danger: gone !== null,
    run: async () => {
      await change('duplicate.resolve', { id: pair.id, action })
      return gone ? `${gone.key} was deleted` : 'Both were kept'
    },
  })
}
