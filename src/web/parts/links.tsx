import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { changed, tasks, wantTasks } from '../data/tasks.ts'
import { adjust, hrefOf, hrefWith } from '../route.ts'

/** Whatever is named leads to all that is known of it. */

interface OpensProps {
  id: string
  /** Of what kind, where ids alone do not say. */
  more?: Record<string, string>
  class?: string
  children: ComponentChildren
}

/** Opens a thing in the view that lists it; what is filtered stays in the address. */
export const Opens = ({ id, more, class: look, children }: OpensProps) => (
  <a
    class={look}
    href={hrefWith({ ...more, id })}
    data-id={id}
    onClick={(event) => {
      if (event.ctrlKey || event.metaKey) return
      event.preventDefault()
      adjust({ ...more, id })
    }}
  >
    {children}
  </a>
)

export const AgentLink = ({ id }: { id: string }) => <a href={hrefOf('who', { id })}>{id}</a>

export const LockLink = ({ name }: { name: string }) => (
  <a href={hrefOf('who', { tab: 'locks', id: name })}>{name}</a>
)

/** The title of a task, which is asked for if it is not here yet. */
export function Title({ id, or = '' }: { id: string | null; or?: string | null }) {
  useEffect(() => {
    if (id !== null) wantTasks([id])
  }, [id])
  void changed.value
  return <>{(id !== null && tasks.get(id)?.title) || or}</>
}

/** Where a sentence names a task, its id is enough. */
export const TaskLink = ({ id, isBrief = false }: { id: string; isBrief?: boolean }) => (
  <a href={hrefOf('work', { id })} title={isBrief ? (tasks.get(id)?.title ?? '') : ''}>
    <span class="id">{id}</span>
    {!isBrief && [' ', <Title id={id} />]}
  </a>
)
