import type { ComponentChildren } from 'preact'
import type { Refusal } from '../../core/refusal.ts'

interface EmptyProps {
  title: string
  children?: ComponentChildren
  /** What to type next, so that there will be something to see. */
  command?: string
}

export function Empty({ title, children, command }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
      {command && (
        <p>
          <code class="command">{command}</code>
        </p>
      )}
    </div>
  )
}

/** Nothing is said of what is not known yet. */
export function Loading() {
  return (
    <p class="dim pad" role="status">
      Loading…
    </p>
  )
}

/** A refusal as people can use it: what happened, why, what to do next. */
export function Trouble({ refusal }: { refusal: Refusal | null }) {
  if (!refusal) return null
  return (
    <div class="trouble" role="alert">
      <strong>{refusal.message}</strong>
      {refusal.next && <span>{refusal.next}</span>}
    </div>
  )
}
