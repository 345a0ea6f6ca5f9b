import type { Cause } from '../../core/stats/cause.ts'
import type { InputOf } from '../../operations/registry.ts'
import { change, type Name } from '../ask.ts'
import { now } from '../data/asked.ts'
import { hrefOfAbout, needed, stuck, stuckRefusal } from '../data/stuck.ts'
import { Button } from '../parts/buttons.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { count, secondsSince, span, withClocks } from '../parts/words.ts'
import { isAdmin, mayWork } from '../session.ts'

/** So many of either are shown at once: what runs is to be seen on the first screen too. */
const NEEDED_MAX = 4
const WAITS_MAX = 2

/** What keeps work from going on: root causes first, and what can be done about each. */
export function Stuck() {
  const found = stuck.value
  const waits = (found?.items ?? []).filter(({ severity }) => severity === 'info')
  const first = [...needed.value.slice(0, NEEDED_MAX), ...waits.slice(0, WAITS_MAX)]
  const rest = [...needed.value.slice(NEEDED_MAX), ...waits.slice(WAITS_MAX)]
  const n = needed.value.length
  return (
    <Panel title="Stuck" class="stuck" aside={found && <span>{saysNeeded(n)}</span>}>
      <Trouble refusal={stuckRefusal.value} />
      {!found && !stuckRefusal.value && <Loading />}
      {found && n === 0 && found.more === 0 && (
        <p class="fine">
          <Icon name="done" /> Nothing needs a person.
        </p>
      )}
      <Causes of={first} />
      {rest.length > 0 && (
        <details>
          <summary>and {count(rest.length, 'cause')} more</summary>
          <Causes of={rest} />
        </details>
      )}
      {found && found.more > 0 && (
        <p class="dim pad">and {count(found.more, 'cause')} more: leasehold stuck --limit 200</p>
      )}
    </Panel>
  )
}

const saysNeeded = (n: number) =>
  n === 0 ? 'nothing' : n === 1 ? '1 needs a person' : `${n} need a person`

const Causes = ({ of }: { of: Cause[] }) => (
  <ul class="rows">
    {of.map((cause) => (
      <CauseRow key={cause.id} cause={cause} />
    ))}
  </ul>
)

const ICONS = { bad: 'failed', warn: 'lost', info: 'in_progress' } as const
const WORDS = { bad: 'Blocked', warn: 'Look', info: 'Waits' } as const

function CauseRow({ cause }: { cause: Cause }) {
  const { severity, what, why, next, since, about } = cause
  const remedies = cause.actions.filter(({ admin }) => (admin ? isAdmin() : mayWork()))
  return (
    <li class={`row cause is-${severity}`}>
      <span class="cause-mark">
        <Icon name={ICONS[severity]} />
        <span class="only-read">{WORDS[severity]}: </span>
      </span>
      <div class="cause-what">
        {since !== null && (
          <span class="dim number cause-since" title={since}>
            {span(secondsSince(since, now.value))}
          </span>
        )}
        <p class="cause-says">{withClocks(what)}</p>
        {why !== '' && why !== what && <p class="dim">{withClocks(why)}</p>}
        {next !== '' && remedies.length === 0 && <p class="dim">{next}</p>}
        <div class="cause-about">
          <Things of={about} />
          <Remedies cause={cause} remedies={remedies} />
        </div>
      </div>
    </li>
  )
}

const Things = ({ of }: { of: Cause['about'] }) => (
  <span>
    {of.map((each) => (
      <a key={`${each.kind} ${each.id}`} class="tag" href={hrefOfAbout(each)}>
        {each.kind === 'events' ? 'events' : `${each.kind} ${each.id}`}
      </a>
    ))}
  </span>
)

/** What can be done about it, as far as the person who looks may do it. */
function Remedies({ cause, remedies }: { cause: Cause; remedies: Cause['actions'] }) {
  return (
    <span>
      {remedies.map((remedy) => (
        <Button
          key={remedy.says}
          kind="small"
          label={`${remedy.says}: ${cause.what}`}
          act={() =>
            confirm({
              title: `${remedy.says}?`,
              says: [cause.what, ...(cause.next === '' ? [] : [cause.next])],
              verb: remedy.says,
              danger: /release|cancel/i.test(remedy.says),
              run: async () => {
                await change(remedy.operation as Name, remedy.input as InputOf<Name>)
                return `${remedy.says}: done`
              },
            })
          }
        >
          {remedy.says}
        </Button>
      ))}
    </span>
  )
}
