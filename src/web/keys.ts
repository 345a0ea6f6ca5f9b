import { signal } from '@preact/signals'
import { adjust, go, route, VIEWS } from './route.ts'
import { toggleTheme } from './theme.ts'

export const helpOpen = signal(false)

/** For the page of help: what each key does. */
export const KEYS: [string, string][] = [
  ['1 … 8', 'go to a view, in the order of the menu'],
  ['/', 'search or filter in this view'],
  ['t', 'light or dark'],
  ['Esc', 'close what is open'],
  ['?', 'this help'],
  ['← → + −', 'on the timeline: move and zoom'],
]

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')

window.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === 'Escape') return close()
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return
  const view = VIEWS[Number(event.key) - 1]
  if (view) return go(view)
  if (event.key === '?') helpOpen.value = true
  else if (event.key === 't') toggleTheme()
  else if (event.key === '/') {
    const search = document.querySelector<HTMLElement>('main input[type=search]')
    if (search) event.preventDefault()
    search?.focus()
  }
})

function close(): void {
  helpOpen.value = false
  if (document.querySelector('dialog[open]')) return
  if (route.value.params.has('id')) adjust({ id: null })
}
