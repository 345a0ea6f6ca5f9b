import { effect, signal } from '@preact/signals'

type Theme = 'light' | 'dark'
const KEY = 'leasehold-theme'

function kept(): Theme | null {
  const said = localStorage.getItem(KEY)
  return said === 'light' || said === 'dark' ? said : null
}

/** What the person chose; null: as the system has it. */
const chosen = signal<Theme | null>(kept())
const isDark = screenIs('(prefers-color-scheme: dark)')
/** A phone, for what style sheets cannot say: how high a row is, how much room a name has. */
export const isNarrow = screenIs('(max-width: 820px)')

/** Whether it is so, as long as it is. */
function screenIs(question: string) {
  const asked = matchMedia(question)
  const is = signal(asked.matches)
  asked.addEventListener('change', () => (is.value = asked.matches))
  return is
}

export const theme = (): Theme => chosen.value ?? (isDark.value ? 'dark' : 'light')

export function toggleTheme(): void {
  chosen.value = theme() === 'dark' ? 'light' : 'dark'
  localStorage.setItem(KEY, chosen.value)
}

effect(() => {
  document.documentElement.dataset['theme'] = theme()
})
