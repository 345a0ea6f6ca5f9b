import { now } from '../data/asked.ts'
import {
  blocked,
  type ShownCause,
  hrefOfAbout,
  needed,
  remediesOf,
  stuck,
  stuckRefusal,
} from '../data/stuck.ts'
import { Acts } from '../parts/buttons.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { mine } from '../parts/resource.ts'
import { count, secondsSince, span, withClocks } from '../parts/words.ts'

/** So many of either are shown at once: what runs is to be seen on the first screen too. */
const NEEDED_MAX = 4
const WAITS_MAX = 2

/** What a person can unblock: what most waits behind first; then what only has to wait its turn. */
export function Blocked() {
  const all = blocked.value
  const n = needed.value.length
  const [needs, waits] = [all.slice(0, n), all.slice(n)]
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

const Causes = ({ of }: { of: ShownCause[] }) => (
  <ul class="rows">
    {of.map((cause) => (
      <CauseRow key={cause.id} cause={cause} />
    ))}
  </ul>
)

const ICONS = { bad: 'failed', warn: 'lost', info: 'in_progress' } as const
const WORDS = { bad: 'Blocked', warn: 'Look', info: 'Waits' } as const

function CauseRow({ cause }: { cause: ShownCause }) {
  const { severity, what, why, next, since, about } = cause
  const remedies = remediesOf(cause)
  return (
    <li class={`line cause is-${severity}`}>
      <span class="cause-mark">
        <Icon name={ICONS[severity]} />
        <span class="only-read">{WORDS[severity]}: </span>
      </span>
      <div class="grows">
        <p class="cause-says">{withClocks(what)}</p>
        {why !== '' && why !== what && <p class="dim">{withClocks(why)}</p>}
        {next !== '' && mine(remedies).length === 0 && <p class="dim">{next}</p>}
        <div class="buttons">
          {about.map((each) => (
            <a key={`${each.kind} ${each.id}`} class="tag" href={hrefOfAbout(each)}>
              {each.kind === 'events' ? 'events' : `${each.kind} ${each.id}`}
            </a>
          ))}
          <Acts of={remedies} kind="quiet" />
        </div>
      </div>
      {since !== null && (
        <span class="dim number" title={since}>
          {span(secondsSince(since, now.value))}
        </span>
      )}
    </li>
  )
}
