import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal } from '../../core/refusal.ts'
import { Button } from './buttons.tsx'
import { Select } from './frame.tsx'
import { toast } from './toast.tsx'
import { Trouble } from './empty.tsx'

/** Something that changes the world, and what it will do, said before it is done. */
interface Action {
  title: string
  /** What will happen, one sentence each. */
  says: string[]
  verb: string
  danger?: boolean
  /** What is asked for before it is done; `run` is told what was said, in this order. */
  fields?: Field[]
  run(...said: string[]): Promise<string>
}

/** Its name, and what it begins as. */
interface Field {
  label: string
  initial: string
  type?: 'text' | 'number'
  /** One of these, rather than anything. */
  choices?: string[]
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
  const said = useSignal((action.fields ?? []).map(({ initial }) => initial))
  const refusal = useSignal<Refusal | null>(null)
  const isBusy = useSignal(false)
  useEffect(() => box.current!.showModal(), [])
  const close = () => (asked.value = null)
  const act = async () => {
    isBusy.value = true
    try {
      toast(await action.run(...said.value))
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
        {action.fields?.map((field, i) => (
          <DialogField
            key={field.label}
            field={field}
            value={said.value[i]!}
            change={(text) => (said.value = said.value.with(i, text))}
          />
        ))}
        <Trouble refusal={refusal.value} />
        <div class="dialog-buttons">
          <Button act={() => box.current!.close()}>Keep as it is</Button>
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

interface FieldProps {
  field: Field
  value: string
  change: (text: string) => void
}

function DialogField({ field: { label, type, choices }, value, change }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      {choices ? (
        <Select label={label} of={choices} chosen={value} choose={change} />
      ) : (
        <input
          inputMode={type === 'number' ? 'decimal' : 'text'}
          value={value}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </label>
  )
}
