import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'
import { type Act, mine } from './resource.ts'

interface ButtonProps {
  act: () => void
  kind?: 'primary' | 'quiet' | 'danger-quiet' | 'fresh'
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

/** A button for each thing that the person who looks may do. */
export function Acts({ of, kind }: { of: Act[]; kind?: Act['kind'] }) {
  const may = mine(of)
  if (may.length === 0) return null
  return (
    <span class="buttons">
      {may.map((each) => {
        const look = each.kind ?? kind
        return (
          <Button
            key={each.label ?? each.says}
            act={each.act}
            {...(look && { kind: look })}
            {...(each.label && { label: each.label })}
          >
            {each.says}
          </Button>
        )
      })}
    </span>
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
