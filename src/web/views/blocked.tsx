import {
  blocked,
  inbox,
  type ShownCause,
  hrefOfAbout,
  needed,
  remediesOf,
  stuck,
  stuckRefusal,
} from '../data/stuck.ts'
import { Acts, mine } from '../parts/acts.tsx'
import { Loading, Panel, Trouble } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { Rows } from '../parts/list.tsx'
import { count, withClocks } from '../parts/words.ts'
import { Behind } from '../resources/lock.tsx'
import { Lasts } from '../resources/task.tsx'

/** So many of either are shown at once: what runs is to be seen on the first screen too. */
const NEEDED_MAX = 4
const WAITS_MAX = 2

/** What a person can unblock: what most waits behind first; then what only has to wait its turn. */
export function Blocked() {
  const needs = needed.value
  const n = needs.length
  const waits = blocked.value.filter(({ severity }) => severity === 'info')
  const first = [...needs.slice(0, NEEDED_MAX), ...waits.slice(0, WAITS_MAX)]
  const rest = [...needs.slice(NEEDED_MAX), ...waits.slice(WAITS_MAX)]
  const more = stuck.value?.more ?? 0
  return (
    <Panel title="Blocked now" aside={stuck.value && n > 0 && <span class="number">{n}</span>}>
      <Trouble refusal={stuckRefusal.value} />
      {!stuck.value && !stuckRefusal.value && <Loading />}
      {stuck.value && n === 0 && more === 0 && (
        <p class="fine pad">
          <Icon name="done" /> Nothing needs a person.
        </p>
      )}
      <Causes of={first} />
      {rest.length > 0 && (
        <details>
          <summary>and {rest.length} more</summary>
          <Causes of={rest} />
        </details>
      )}
      {more > 0 && <p class="dim pad">and {count(more, 'cause')} more than are listed here</p>}
    </Panel>
  )
}

/** What is over and waits for a person, by reason: it can be emptied. */
export function Inbox() {
  const all = inbox.value
  if (all.length === 0) return null
  return (
    <Panel title="Inbox" aside={<span class="number">{all.length}</span>}>
      <Causes of={all.slice(0, NEEDED_MAX)} />
      {all.length > NEEDED_MAX && (
        <details>
          <summary>and {all.length - NEEDED_MAX} more</summary>
          <Causes of={all.slice(NEEDED_MAX)} />
        </details>
      )}
    </Panel>
  )
}

const Causes = ({ of }: { of: ShownCause[] }) => (
  <Rows
    items={of}
    keyOf={({ id }) => id}
    max={Number.POSITIVE_INFINITY}
    render={(cause) => <CauseRow cause={cause} />}
  />
)

const ICONS = { bad: 'failed', warn: 'lost', info: 'in_progress' } as const
const WORDS = { bad: 'Blocked', warn: 'Look', info: 'Waits' } as const

function CauseRow({ cause }: { cause: ShownCause }) {
  const { severity, what, why, next, since, about } = cause
  const remedies = remediesOf(cause)
  // Who holds what is waited for is the root; all others are told behind it.
  const root = about.find(({ kind }) => kind === 'agent')
  const shown = about.filter((each) => each.kind !== 'agent' || each === root)
  return (
    <div class={`line cause is-${severity}`}>
      <span class="cause-mark">
        <Icon name={ICONS[severity]} />
        <span class="only-read">{WORDS[severity]}: </span>
      </span>
      <div class="grows">
        <p class="cause-says">{withClocks(what)}</p>
        {why !== '' && why !== what && <p class="dim">{withClocks(why)}</p>}
        {next !== '' && mine(remedies).length === 0 && <p class="dim">{next}</p>}
        {root && <Behind agent={root.id} />}
        <div class="buttons">
          {shown.map((each) => (
            <a key={`${each.kind} ${each.id}`} class="tag" href={hrefOfAbout(each)}>
              {each.kind === 'events' ? 'events' : `${each.kind} ${each.id}`}
            </a>
          ))}
          <Acts quiet of={remedies} />
        </div>
      </div>
      {since !== null && <Lasts since={since} class="dim" />}
    </div>
  )
}
