import { signal } from '@preact/signals'

const SHOWN_MS = 6_000
const said = signal<{ id: number; text: string; tone: string }[]>([])
let next = 0

/** Says what was done; read out, and gone after a while. */
export function toast(text: string, tone = ''): void {
  const id = (next += 1)
  said.value = [...said.value, { id, text, tone }]
  setTimeout(() => (said.value = said.value.filter((each) => each.id !== id)), SHOWN_MS)
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {said.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          {text}
        </div>
      ))}
    </div>
  )
}
