import { Button } from './buttons.tsx'
import { toast } from './toast.tsx'

/** A command for the shell of a person: what only the host that has the files can do. */
export function CopyCommand({ says, command }: { says: string; command: string }) {
  const copy = async () => {
    // Without HTTPS a browser has a clipboard on loopback only.
    const copied = await navigator.clipboard?.writeText(command).then(
      () => true,
      () => false,
    )
    toast(
      copied ? `Copied: ${command}` : 'The browser does not let this page copy: select the text',
    )
  }
  return (
    <li class="copy">
      <span class="dim">{says}</span>
      <code class="command">{command}</code>
      <Button kind="small" label={`Copy ${command}`} act={() => void copy()}>
        Copy
      </Button>
    </li>
  )
}
