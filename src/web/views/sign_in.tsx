import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Trouble } from '../parts/frame.tsx'
import { signIn, signInTrouble } from '../session.ts'

export function SignIn() {
  const token = useSignal('')
  useEffect(() => void (document.title = 'Sign in · Leasehold'), [])
  return (
    <main class="sign-in">
      <img src="/favicon.svg" width="48" height="48" alt="" />
      <h1>Leasehold</h1>
      <Trouble refusal={signInTrouble.value} />
      <p>
        Get a link that signs you in. It works once:
        <code class="command">leasehold up --link</code>
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void signIn(token.value.trim())
        }}
      >
        <label class="field">
          <span>Or paste a token</span>
          <input
            type="password"
            autocomplete="off"
            value={token.value}
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button is-primary" disabled={token.value.trim() === ''}>
          Sign in
        </button>
      </form>
      <p class="dim">
        For somebody who should only look: <code>leasehold up --link --viewer</code>
      </p>
    </main>
  )
}
