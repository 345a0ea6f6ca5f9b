import { useEffect, useRef } from 'preact/hooks'
import { helpOpen, KEYS } from '../keys.ts'
import { Button } from '../parts/buttons.tsx'

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
      <div class="dialog-buttons">
        <Button act={() => box.current!.close()}>Close</Button>
      </div>
    </dialog>
  )
}
