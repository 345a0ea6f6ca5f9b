import { ask } from '../ask.ts'
import { now, useAsked } from '../data/asked.ts'
import { hrefOfAbout, stuck } from '../data/stuck.ts'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { count, secondsSince, span, withClocks } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

const LOOK_MS = 15_000

/** What the server raises alarm about; what stands above as a cause is not said twice. */
export function Alerts() {
  const asked = useAsked('alerts', () => ask('alert.list'), {
    affects: ({ type }) => type.startsWith('alert.'),
    every_ms: LOOK_MS,
  })
  const told = new Set((stuck.value?.items ?? []).map(({ id }) => id))
  const items = asked.value.value?.items ?? []
  const alerts = items.filter(({ id }) => !told.has(id))
  return (
    <Panel title="Alerts" aside={asked.value.value && count(alerts.length, 'alert')}>
      <Trouble refusal={asked.refusal.value} />
      {!asked.value.value && !asked.refusal.value && <Loading />}
      {asked.value.value && alerts.length === 0 && (
        <p class="fine">
          <Icon name="done" />{' '}
          {items.length === 0 ? 'No alert stands.' : 'All of them stand above.'}
        </p>
      )}
      <ul class="rows alerts">
        {alerts.map(({ id, message, since, about: [about] }) => (
          <li key={id} class="row alert">
            <Icon name="lost" />
            <a href={about ? hrefOfAbout(about) : hrefOf('events', { type: 'alert' })}>
              {withClocks(message)}
            </a>
            <span class="dim number" title={since}>
              {span(secondsSince(since, now.value))}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
