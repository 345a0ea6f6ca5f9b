import type { Cause } from '../../core/stats/cause.ts'
import type { InputOf } from '../../operations/registry.ts'
import { change, type Name } from '../ask.ts'
import { now } from '../data/asked.ts'
import { hrefOfAbout, stuck, stuckRefusal } from '../data/stuck.ts'
import { Button } from '../parts/buttons.tsx'
import { confirm } from '../parts/dialog.tsx'
import { Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { count, secondsSince, span, withClocks } from '../parts/words.ts'
import { isAdmin, mayWork } from '../session.ts'

/** What keeps work from going on: root causes first, and what can be done about each. */
export function Stuck() {
  const found = stuck.value
  const items = found?.items ?? []
  const needed = items.filter(({ severity }) => severity !== 'info')
  const others = items.filter(({ severity }) => severity === 'info')
  return (
    <Panel title="Stuck" class="stuck" aside={found && <span>{saysNeeded(needed.length)}</span>}>
      <Trouble refusal={stuckRefusal.value} />
      {found && needed.length === 0 && found.more === 0 && (
        <p class="fine">
          <Icon name="done" /> Nothing needs a person.
        </p>
      )}
      <ul class="rows">
        {[...needed, ...others].map((cause) => (
          <CauseRow key={cause.id} cause={cause} />
        ))}
      </ul>
      {found && found.more > 0 && (
        <p class="dim pad">and {count(found.more, 'cause')} more: leasehold stuck --limit 200</p>
      )}
    </Panel>
  )
}

const saysNeeded = (n: number) =>
  n === 0 ? 'nothing' : n === 1 ? '1 needs a person' : `${n} need a person`

const ICONS = { bad: 'failed', warn: 'lost', info: 'in_progress' } as const
const WORDS = { bad: 'Blocked', warn: 'Look', info: 'Waits' } as const

function CauseRow({ cause }: { cause: Cause }) {
  const { severity, what, why, next, since, about } = cause
  return (
    <li class={`row cause is-${severity}`}>
      <span class="cause-mark">
        <Icon name={ICONS[severity]} />
        <span class="only-read">{WORDS[severity]}: </span>
      </span>
      <div class="cause-what">
        <p class="cause-says">{withClocks(what)}</p>
        {why !== '' && why !== what && <p class="dim">{withClocks(why)}</p>}
        {about.length > 0 && (
          <p class="cause-about">
            {about.map((each) => (
              <a key={`${each.kind} ${each.id}`} class="tag" href={hrefOfAbout(each)}>
                {each.kind === 'events' ? 'events' : `${each.kind} ${each.id}`}
              </a>
            ))}
          </p>
        )}
        {next !== '' && <p class="dim cause-next">{next}</p>}
        <Remedies cause={cause} />
      </div>
      {since !== null && (
        <span class="dim number" title={since}>
          {span(secondsSince(since, now.value))}
        </span>
      )}
    </li>
  )
}

/** What can be done about it, as far as the person who looks may do it. */
function Remedies({ cause }: { cause: Cause }) {
  const allowed = cause.actions.filter(({ admin }) => (admin ? isAdmin() : mayWork()))
  if (allowed.length === 0) return null
  return (
    <span class="cause-actions">
      {allowed.map((remedy) => (
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
