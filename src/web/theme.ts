import { effect, signal } from '@preact/signals'

type Theme = 'light' | 'dark'
const KEY = 'leasehold-theme'

function kept(): Theme | null {
  const said = localStorage.getItem(KEY)
  return said === 'light' || said === 'dark' ? said : null
}

/** What the person chose; null: as the system has it. */
const chosen = signal<Theme | null>(kept())
const system = matchMedia('(prefers-color-scheme: dark)')
const systemTheme = signal<Theme>(system.matches ? 'dark' : 'light')
system.addEventListener('change', () => (systemTheme.value = system.matches ? 'dark' : 'light'))

export const theme = () => chosen.value ?? systemTheme.value

export function toggleTheme(): void {
  chosen.value = theme() === 'dark' ? 'light' : 'dark'
  localStorage.setItem(KEY, chosen.value)
}

effect(() => {
  document.documentElement.dataset['theme'] = theme()
})
