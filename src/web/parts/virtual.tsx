import { useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useSized } from './sized.ts'

interface VirtualProps<T> {
  items: T[]
  /** Height of every row, in pixels. */
  row: number
  label: string
  keyOf: (item: T) => string
  render: (item: T) => ComponentChildren
  /** Told which items are on screen. */
  shown?: (items: T[]) => void
  /** The box that scrolls, for those who move it. */
  boxRef?: RefObject<HTMLDivElement | null>
  scrolled?: () => void
}

/** Rows beyond the edges, so that scrolling does not show a gap. */
const MORE = 6

/** A list of any length: only what is on screen exists in the page. */
export function Virtual<T>(props: VirtualProps<T>) {
  const { items, row, label, keyOf, render, shown, boxRef, scrolled } = props
  const { box, size } = useSized(boxRef)
  const top = useSignal(0)
  const first = Math.max(0, Math.floor(top.value / row) - MORE)
  const last = Math.min(items.length, Math.ceil((top.value + size.height) / row) + MORE)
  const visible = items.slice(first, last)
  shown?.(visible)
  return (
    <div
      class="virtual"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={label}
      onScroll={() => {
        top.value = box.current!.scrollTop
        scrolled?.()
      }}
    >
      <ul class="rows" style={{ height: `${items.length * row}px` }}>
        {visible.map((item, i) => (
          <li
            key={keyOf(item)}
            class="virtual-row"
            style={{ top: `${(first + i) * row}px`, height: `${row}px` }}
            aria-setsize={items.length}
            aria-posinset={first + i + 1}
          >
            {render(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}
