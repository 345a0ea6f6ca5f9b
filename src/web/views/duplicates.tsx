import type { OutputOf } from '../../client/calls.ts'
import { ask, change } from '../ask.ts'
import { aboutMemory } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { Button } from '../parts/buttons.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { mayWork } from '../session.ts'

type Pair = OutputOf<'duplicate.list'>['items'][number]
type Action = 'keep_both' | 'delete_a' | 'delete_b'

/** Notes that say much the same: one of them is often enough. */
export function Duplicates() {
  const asked = useAsked('duplicates', () => ask('duplicate.list', { limit: 200 }), {
    affects: aboutMemory,
  })
  const pairs = asked.value.value?.items ?? []
  return (
    <div class="stack pad-top scrolls">
      <Trouble refusal={asked.refusal.value} />
      {asked.value.value && pairs.length === 0 && (
        <Empty title="No two notes say the same" command="leasehold memory duplicates">
          Notes are compared by meaning in the background; pairs that are alike show up here.
        </Empty>
      )}
      {pairs.map((pair) => (
        <PairSheet key={pair.id} pair={pair} />
      ))}
    </div>
  )
}

function PairSheet({ pair }: { pair: Pair }) {
  return (
    <section class="panel conflict-sheet" aria-label="Two notes that are alike">
      <header class="panel-head">
        <h2>{Math.round(pair.similarity * 100)}% alike</h2>
        {mayWork() && <Button act={() => settle(pair, 'keep_both')}>Keep both</Button>}
      </header>
      <div class="sides">
        <PairSide pair={pair} name="a" />
        <PairSide pair={pair} name="b" />
      </div>
    </section>
  )
}

function PairSide({ pair, name }: { pair: Pair; name: 'a' | 'b' }) {
  const side = pair[name]
  if (!side) return <p class="dim">It is gone.</p>
  return (
    <div>
      <h3>
        {side.key}, {side.scope}, by {side.author}
      </h3>
      <pre class="body">{side.excerpt}</pre>
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
