import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal } from '../../core/refusal.ts'
import { toast } from './toast.tsx'
import { Trouble } from './empty.tsx'

/** Something that changes the world, and what it will do, said before it is done. */
export interface Action {
  title: string
  /** What will happen, one sentence each. */
  says: string[]
  verb: string
  danger?: boolean
  /** Asked for before it is done: its name, and what it begins as. */
  field?: { label: string; initial: string; type?: 'text' | 'number' }
  run(said: string): Promise<string>
}

const asked = signal<Action | null>(null)

export function confirm(action: Action): void {
  asked.value = action
}

/** The one dialog of the page; the browser keeps the keyboard inside it. */
export function ConfirmDialog() {
  const action = asked.value
  return action && <Confirming key={action.title} action={action} />
}

function Confirming({ action }: { action: Action }) {
  const box = useRef<HTMLDialogElement>(null)
  const said = useSignal(action.field?.initial ?? '')
  const refusal = useSignal<Refusal | null>(null)
  const isBusy = useSignal(false)
  useEffect(() => box.current!.showModal(), [])
  const close = () => (asked.value = null)
  const act = async () => {
    isBusy.value = true
    try {
      toast(await action.run(said.value))
      close()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
    } finally {
      isBusy.value = false
    }
  }
  return (
    <dialog ref={box} class="dialog" aria-labelledby="dialog-title" onClose={close}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          void act()
        }}
      >
        <h2 id="dialog-title">{action.title}</h2>
        <ul class="dialog-says">
          {action.says.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
        {action.field && <DialogField field={action.field} said={said} />}
        <Trouble refusal={refusal.value} />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => box.current!.close()}>
            Keep as it is
          </button>
          <button
            type="submit"
            class={`button ${action.danger ? 'is-danger' : 'is-primary'}`}
            disabled={isBusy.value}
          >
            {action.verb}
          </button>
        </div>
      </form>
    </dialog>
  )
}

function DialogField({ field, said }: { field: Action['field'] & {}; said: { value: string } }) {
  return (
    <label class="field">
      <span>{field.label}</span>
      <input
        inputMode={field.type === 'number' ? 'numeric' : 'text'}
        value={said.value}
        onInput={(event) => (said.value = event.currentTarget.value)}
      />
    </label>
  )
}
