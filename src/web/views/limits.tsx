import { addLimit, editLimit, type Limited, pauseQueue } from '../actions.ts'
import type { QueueAnswer } from '../data/about.ts'
import { Button } from '../parts/buttons.tsx'
import { Panel } from '../parts/frame.tsx'
import { isAdmin } from '../session.ts'
import { Action } from './user_shares.tsx'

interface Row {
  name: string
  what: Limited
  max: number | null
  used: number
  paused: boolean
}

/** What may run at once: in all, of a project, of a group. Those of users are with their queues. */
export function Limits({ status }: { status: QueueAnswer }) {
  const add = (
    <Button kind="quiet" act={addLimit}>
      Add a limit
    </Button>
  )
  return (
    <Panel title="Limits" aside={isAdmin() && add}>
      <ul class="rows">
        {rowsIn(status).map((row) => (
          <LimitRow key={row.name} row={row} />
        ))}
      </ul>
    </Panel>
  )
}

/** Every project that is served is here, with or without a limit: it can be given one. */
function rowsIn({ pool, limits, dispatchers }: QueueAnswer): Row[] {
  const known = limits.map(({ project, group, ...rest }): Row => {
    if (project === null) return { name: `group ${group}`, what: { group: group! }, ...rest }
    return { name: `project ${project}`, what: { project }, ...rest }
  })
  const names = new Set(known.map(({ name }) => name))
  const served = new Set(dispatchers.flatMap(({ projects }) => projects))
  const others = [...served]
    .filter((project) => !names.has(`project ${project}`))
    .map((project): Row => {
      return { name: `project ${project}`, what: { project }, max: null, used: 0, paused: false }
    })
  const rest = [...known, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return [{ name: 'pool', what: {}, ...pool, paused: false }, ...rest]
}

function LimitRow({ row: { name, what, max, used, paused } }: { row: Row }) {
  const { project } = what
  return (
    <li class="row limit">
      <span class="limit-name">{name}</span>
      <span class={max !== null && used >= max ? 'number is-full' : 'dim number'}>
        {max === null ? `${used} running, no limit` : `${used} of ${max}`}
        {paused ? ' · paused' : ''}
      </span>
      {isAdmin() && (
        <span class="share-actions">
          {project !== undefined && (
            <Action
              says={paused ? 'Resume' : 'Pause'}
              of={name}
              act={() => pauseQueue(!paused, { project })}
            />
          )}
          <Action says="Limit" of={`of ${name}`} act={() => editLimit(what, max)} />
        </span>
      )}
    </li>
  )
}
