import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { useAsked } from '../data/asked.ts'
import type { InputOf } from '../../operations/registry.ts'
import { change, type Name } from '../ask.ts'
import { isAdmin, mayWork } from '../session.ts'
import { Select, Trouble } from './frame.tsx'
import { Icon, type IconName } from './icon.tsx'

/** Something that a person may do. It asks first, and says what will happen before it does. */
export interface Act {
  says: string
  /** For those who do not see what it stands beside; also what the dialog is called. */
  label?: string
  kind?: 'primary' | 'danger' | undefined
  admin?: boolean
  /** What will happen, one sentence each. */
  will: string[]
  /** What is asked for; `run` is told what was said, in this order. */
  fields?: Field[]
  /** What the button of the dialog says, unless `says`. */
  verb?: string
  /** Does it, and answers what is then said. */
  run: (...said: string[]) => Promise<string>
}

interface Field {
  label: string
  /** What it begins as. */
  initial: string
  type?: 'number' | 'long'
  /** One of these, rather than anything: asked for, and then as they are at any moment. */
  choices?: () => Promise<() => string[]>
}

interface ButtonProps {
  act: () => void
  kind?: 'primary' | 'quiet' | 'danger-quiet' | 'fresh'
  label?: string
  disabled?: boolean
  children: ComponentChildren
}

export function Button({ act, kind, label, disabled, children }: ButtonProps) {
  const look = kind ? `button is-${kind}` : 'button'
  return (
    <button type="button" class={look} aria-label={label} disabled={disabled} onClick={act}>
      {children}
    </button>
  )
}

/** Calls an operation, and says what is done. */
export const does =
  <N extends Name>(name: N, input: InputOf<N>, said: string) =>
  async () => {
    await change(name, input)
    return said
  }

/** Of these, what the person who looks may do. */
export const mine = (acts: Act[]) => acts.filter(({ admin }) => (admin ? isAdmin() : mayWork()))

/** A button for each thing that the person who looks may do; in a list of rows, quiet ones. */
export function Acts({ of, quiet }: { of: Act[]; quiet?: boolean }) {
  const may = mine(of)
  if (may.length === 0) return null
  return (
    <span class="buttons">
      {may.map((act) => {
        const { says, label = says, kind } = act
        const look = quiet ? 'quiet' : kind === 'danger' ? 'danger-quiet' : kind
        return (
          <Button key={label} act={() => confirm(act)} label={label} {...(look && { kind: look })}>
            {says}
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

const asked = signal<Act | null>(null)

/** Asks in the one dialog of the page; the browser keeps the keyboard inside it. */
export const confirm = (act: Act) => void (asked.value = act)

export function ConfirmDialog() {
  const act = asked.value
  return act && <Confirming key={act.label ?? act.says} act={act} />
}

/** How long an answer may take before it is said that there is none yet. */
const LATE_MS = 1_500

/** Sends what was confirmed; what comes of it is said even when the dialog was closed meanwhile. */
function useSending(act: Act, close: () => void) {
  const sent = useSignal<'no' | 'yes' | 'late'>('no')
  const refusal = useSignal<Refusal | null>(null)
  const isClosed = useRef(false)
  const send = async (said: string[]) => {
    sent.value = 'yes'
    const late = setTimeout(() => (sent.value = 'late'), LATE_MS)
    try {
      toast(await act.run(...said))
      if (!isClosed.current) close()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
      if (isClosed.current) toast(`${act.label ?? act.says}: ${error.message}`, 'is-bad')
    } finally {
      clearTimeout(late)
      sent.value = 'no'
    }
  }
  /** Closing does not take back what was sent, and must not look as if it did. */
  const leave = () => {
    isClosed.current = true
    if (sent.value !== 'no') toast(`${act.label ?? act.says} was sent; no answer has come yet`)
    close()
  }
  return { sent, refusal, send, leave }
}

function Confirming({ act }: { act: Act }) {
  const { says, label = says, will, fields = [], verb = says } = act
  const box = useRef<HTMLDialogElement>(null)
  const said = useSignal(fields.map(({ initial }) => initial))
  const { sent, refusal, send, leave } = useSending(act, () => (asked.value = null))
  useEffect(() => box.current!.showModal(), [])
  const isSent = sent.value !== 'no'
  return (
    <dialog ref={box} class="dialog" aria-labelledby="dialog-title" onClose={leave}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(said.value)
        }}
      >
        <h2 id="dialog-title">{fields.length > 0 ? label : `${label}?`}</h2>
        <ul class="dialog-says">
          {will.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
        {fields.map((field, i) => (
          <FieldInput
            key={field.label}
            field={field}
            value={said.value[i]!}
            put={(text) => (said.value = said.value.with(i, text))}
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
        <div class="buttons is-end">
          <Button act={() => box.current!.close()}>{isSent ? 'Close' : 'Keep as it is'}</Button>
          <button
            type="submit"
            class={`button ${act.kind === 'danger' ? 'is-danger' : 'is-primary'}`}
            disabled={isSent}
          >
            {isSent ? 'Sending…' : verb}
          </button>
        </div>
      </form>
    </dialog>
  )
}

interface FieldProps {
  field: Field
  value: string
  put: (text: string) => void
}

function FieldInput({ field: { label, type, choices }, value, put }: FieldProps) {
  const typed = { value, onInput: (event: Typed) => put(event.currentTarget.value) }
  return (
    <label class="field">
      <span>{label}</span>
      {choices ? (
        <Choices {...{ label, choices, value, put }} />
      ) : type === 'long' ? (
        <textarea rows={5} {...typed} />
      ) : (
        <input inputMode={type === 'number' ? 'decimal' : 'text'} {...typed} />
      )}
    </label>
  )
}

interface ChoicesProps extends Omit<FieldProps, 'field'> {
  label: string
  choices: () => Promise<() => string[]>
}

/** What can be chosen is asked for when there is something to choose. */
function Choices({ label, choices, value, put }: ChoicesProps) {
  const known = useAsked(label, choices).value?.() ?? []
  return (
    <Select
      label={label}
      of={[...new Set([value, ...known])]}
      chosen={value}
      choose={put}
      says={(each) => each || 'None'}
    />
  )
}

type Typed = { currentTarget: { value: string } }

/** What is no number would be sent as null, and take a limit away. */
export function numberIn(said: string): number {
  const number = said.trim() === '' ? Number.NaN : Number(said)
  if (Number.isFinite(number)) return number
  throw new Refusal('invalid', `${said || 'Nothing'} is not a number`, { next: 'Give one like 2.' })
}

const SHOWN_MS = 6_000
const toasts = signal<{ text: string; tone: string }[]>([])

/** Says what was done; read out, and gone after a while. */
export function toast(text: string, tone = ''): void {
  const said = { text, tone }
  toasts.value = [...toasts.value, said]
  setTimeout(() => (toasts.value = toasts.value.filter((each) => each !== said)), SHOWN_MS)
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ text, tone }, i) => (
      <div key={i} class={`toast ${tone}`}>
        {text}
      </div>
    ))}
  </div>
)
