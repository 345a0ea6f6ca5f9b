import { signal } from '@preact/signals'
import { go, leave, VIEWS } from './route.ts'
import { who } from './session.ts'
import { toggleTheme } from './theme.ts'

export const helpOpen = signal(false)
export const paletteOpen = signal(false)

/** For the page of help: what each key does. */
export const KEYS: [string, string][] = [
  ['1 … 9', 'go to a view, in the order of the menu'],
  ['⌘K, Ctrl K', 'go anywhere: a view, a task, a lock, an agent'],
  ['/', 'search or filter in this view'],
  ['j k', 'next and previous in a list; Enter opens'],
  ['t', 'light or dark'],
  ['Esc', 'close what is open'],
  ['?', 'this help'],
  ['← → + −', 'on the timeline: move and zoom'],
]

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')

window.addEventListener('keydown', (event) => {
  if ((event.metaKey || event.ctrlKey) && event.key === 'k' && who.value) {
    event.preventDefault()
    if (!document.querySelector('dialog[open]')) paletteOpen.value = true
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
  else if (event.key === '/') {
    const search = document.querySelector<HTMLElement>('main input[type=search]')
    if (search) event.preventDefault()
    search?.focus()
  }
})

// Who went elsewhere, by the way back say, is there.
window.addEventListener('hashchange', () => (paletteOpen.value = false))

/** Along what can be opened in the list where the keyboard is, or in the first one. */
function step(by: 1 | -1): void {
  const from = document.activeElement
  const list =
    from?.closest('.virtual, .rows') ?? document.querySelector('main :is(.virtual, .rows)')
  const rows = [...(list?.querySelectorAll<HTMLElement>(':scope li a[href], .row-button') ?? [])]
  const firsts = rows.filter((row, i) => row.closest('li') !== rows[i - 1]?.closest('li'))
  const at = firsts.findIndex((row) => row.closest('li')!.contains(from))
  firsts[at === -1 ? 0 : at + by]?.focus()
}

function close(): void {
  helpOpen.value = false
  if (document.querySelector('dialog[open]')) return
  leave()
}
