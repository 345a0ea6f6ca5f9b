import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isRefusal, Refusal } from '../../core/refusal.ts'
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

interface Field extends FieldLook {
  /** What it begins as. */
  initial: string
}

export interface FieldLook {
  label: string
  type?: 'text' | 'number' | 'long'
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

/** How long an answer may take before it is said that there is none yet. */
const LATE_MS = 1_500

/** Sends what was confirmed; what comes of it is said even when the dialog was closed meanwhile. */
function useSending(action: Action, close: () => void) {
  const sent = useSignal<'no' | 'yes' | 'late'>('no')
  const refusal = useSignal<Refusal | null>(null)
  const isClosed = useRef(false)
  const send = async (said: string[]) => {
    sent.value = 'yes'
    const late = setTimeout(() => (sent.value = 'late'), LATE_MS)
    try {
      toast(await action.run(...said))
      if (!isClosed.current) close()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
      if (isClosed.current) toast(`${action.title} ${error.message}`, 'is-bad')
    } finally {
      clearTimeout(late)
      sent.value = 'no'
    }
  }
  /** Closing does not take back what was sent, and must not look as if it did. */
  const leave = () => {
    isClosed.current = true
    if (sent.value !== 'no') toast(`${action.verb} was sent; no answer has come yet`)
    close()
  }
  return { sent, refusal, send, leave }
}

function Confirming({ action }: { action: Action }) {
  const box = useRef<HTMLDialogElement>(null)
  const said = useSignal((action.fields ?? []).map(({ initial }) => initial))
  const { sent, refusal, send, leave } = useSending(action, () => (asked.value = null))
  useEffect(() => box.current!.showModal(), [])
  const isSent = sent.value !== 'no'
  return (
    <dialog ref={box} class="dialog" aria-labelledby="dialog-title" onClose={leave}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          void send(said.value)
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
        {isRefusal(refusal.value, 'unavailable') && (
          <p class="dim">It may have been done all the same: look before you send it again.</p>
        )}
        {sent.value === 'late' && (
          <p class="dim" role="status">
            Sent; the server has not answered yet. Closing does not take it back.
          </p>
        )}
        <div class="dialog-buttons">
          <Button act={() => box.current!.close()}>{isSent ? 'Close' : 'Keep as it is'}</Button>
          <button
            type="submit"
            class={`button ${action.danger ? 'is-danger' : 'is-primary'}`}
            disabled={isSent}
          >
            {isSent ? 'Sending…' : action.verb}
          </button>
        </div>
      </form>
    </dialog>
  )
}

interface FieldProps {
  field: FieldLook
  value: string
  change: (text: string) => void
}

export function DialogField({ field: { label, type, choices }, value, change }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      {choices ? (
        <Select
          label={label}
          of={[...new Set([value, ...choices])]}
          chosen={value}
          choose={change}
          says={(each) => each || 'None'}
        />
      ) : type === 'long' ? (
        <textarea rows={5} value={value} onInput={(event) => change(event.currentTarget.value)} />
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
