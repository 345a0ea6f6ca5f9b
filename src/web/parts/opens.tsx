import type { ComponentChildren } from 'preact'
import { adjust, hrefWith } from '../route.ts'

interface OpensProps {
  id: string
  /** Of what kind, where ids alone do not say. */
  more?: Record<string, string>
  class?: string
  children: ComponentChildren
}

/** Opens a thing in the view that lists it; what is filtered stays in the address. */
export function Opens({ id, more, class: look, children }: OpensProps) {
  return (
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
}
