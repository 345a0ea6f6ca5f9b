import { forceRelease } from '../actions.ts'
import { Button } from '../parts/buttons.tsx'
import { isAdmin } from '../session.ts'

/** Frees a lock that another holds, after asking; for admins only. */
export function ReleaseButton({ name, holder }: { name: string; holder: string }) {
  if (!isAdmin()) return null
  return (
    <Button kind="quiet" label={`Force-release ${name}`} act={() => forceRelease(name, holder)}>
      Release
    </Button>
  )
}
