import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

interface ButtonProps {
  act: () => void
  kind?: 'primary' | 'quiet' | 'small' | 'danger-quiet'
  /** For those who do not see the row that it stands in. */
  label?: string
  pressed?: boolean
  disabled?: boolean
  children: ComponentChildren
}

export function Button({ act, kind, label, pressed, disabled, children }: ButtonProps) {
  const look = kind ? `button is-${kind}` : 'button'
  const state = { 'aria-label': label, 'aria-pressed': pressed, disabled }
  return (
    <button type="button" class={look} {...state} onClick={act}>
      {children}
    </button>
  )
}

interface IconButtonProps {
  icon: IconName
  label: string
  act: () => void
}

export function IconButton({ icon, label, act }: IconButtonProps) {
  return (
    <button type="button" class="icon-button" aria-label={label} onClick={act}>
      <Icon name={icon} />
    </button>
  )
}
