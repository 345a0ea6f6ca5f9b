import { forceRelease } from '../actions.ts'
import { isAdmin } from '../session.ts'
import { Icon } from './icon.tsx'

/** Frees a lock that another holds, after asking; for admins only. */
export function ReleaseButton({ name, holder }: { name: string; holder: string }) {
  if (!isAdmin()) return null
  return (
    <button
      type="button"
      class="button is-quiet"
      aria-label={`Force-release ${name}`}
      onClick={() => forceRelease(name, holder)}
    >
      Release
    </button>
  )
}

export function CloseButton({ onClose }: { onClose: () => void }) {
  return (
    <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
      <Icon name="close" />
    </button>
  )
}
