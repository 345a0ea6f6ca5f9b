import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Button } from './parts/acts.tsx'
import { go, leave, VIEWS } from './route.ts'
import { who } from './session.ts'
import { toggleTheme } from './theme.ts'

export const helpOpen = signal(false)

const KEYS: [string, string][] = [
  ['1 … 6', 'go to a view, in the order of the menu'],
  ['⌘K, Ctrl K', 'find a task'],
  ['/', 'search in this view'],
  ['j k', 'next and previous in a list; Enter opens'],
  ['t', 'light or dark'],
  ['Esc', 'close what is open'],
  ['?', 'this help'],
]

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')

window.addEventListener('keydown', (event) => {
  if ((event.metaKey || event.ctrlKey) && event.key === 'k' && who.value) {
    event.preventDefault()
    if (document.querySelector('dialog[open]')) return
    go('work')
    requestAnimationFrame(() => setTimeout(focusSearch))
    return
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === 'Escape') return close()
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return
  const view = VIEWS[Number(event.key) - 1]
  if (view) return go(view)
  if (event.key === '?') helpOpen.value = true
  else if (event.key === 't') toggleTheme()
  else if (event.key === 'j') step(1)
  else if (event.key === 'k') step(-1)
  else if (event.key === '/' && focusSearch()) event.preventDefault()
})

function focusSearch(): boolean {
  const search = document.querySelector<HTMLElement>('main input[type=search]')
  search?.focus()
  return search !== null
}

/** Along what can be opened in the list where the keyboard is, or in the first one. */
function step(by: 1 | -1): void {
  const from = document.activeElement
  const list = from?.closest('.rows') ?? document.querySelector('main .list .rows')
  const rows = [...(list?.querySelectorAll<HTMLElement>(':scope > li [data-id]') ?? [])]
  const at = rows.findIndex((row) => row.closest('li')!.contains(from))
  rows[at === -1 ? 0 : at + by]?.focus()
}

function close(): void {
  helpOpen.value = false
  if (!document.querySelector('dialog[open]')) leave()
}

export function Help() {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => box.current!.showModal(), [])
  return (
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby="help-title"
      onClose={() => (helpOpen.value = false)}
    >
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons is-end">
        <Button act={() => box.current!.close()}>Close</Button>
      </div>
    </dialog>
  )
}
