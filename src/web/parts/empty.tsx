import type { ComponentChildren } from 'preact'
import type { Refusal } from '../../core/refusal.ts'

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
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

interface AnsweredProps<T> {
  of: { value: { value: T | undefined }; refusal: { value: Refusal | null } }
  children: (value: T) => ComponentChildren
}

/** What was asked for, once it is known; until then that it is not, or why. */
export function Answered<T>({ of: { value, refusal }, children }: AnsweredProps<T>) {
  return (
    <>
      <Trouble refusal={refusal.value} />
      {value.value === undefined ? !refusal.value && <Loading /> : children(value.value)}
    </>
  )
}
