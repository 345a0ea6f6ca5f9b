import { signal } from '@preact/signals'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { get, post, SIGNED_OUT } from './ask.ts'

/** Who this page is signed in as. */
interface Who {
  role: 'viewer' | 'agent' | 'admin'
  agent: string
}

/** Undefined while we look; null when nobody is signed in. */
export const who = signal<Who | null | undefined>(undefined)
export const signInTrouble = signal<Refusal | null>(null)

export const mayWork = () => who.value?.role === 'agent' || who.value?.role === 'admin'
export const isAdmin = () => who.value?.role === 'admin'

// A token has expired or was revoked: the page is signed out, whichever call found out.
window.addEventListener(SIGNED_OUT, (event) => {
  if (who.value) signInTrouble.value = (event as CustomEvent<Refusal>).detail
  who.value = null
})

/** Uses the link that the page was opened with, if it was, and finds out who we are. */
export async function begin(): Promise<void> {
  const secret = new URLSearchParams(location.hash.slice(1)).get('link')
  if (secret !== null) {
    // Before anything else: a link does not belong into the history of a browser.
    history.replaceState(null, '', '#/now')
    return signIn(secret)
  }
  await get('/v1/session').then(
    (found) => (who.value = found as Who | null),
    (error: unknown) => {
      who.value = null
      if (isRefusal(error, 'unavailable')) signInTrouble.value = error
    },
  )
}

/** With the secret of a link, or a token. */
export async function signIn(secret: string): Promise<void> {
  signInTrouble.value = null
  try {
    who.value = (await post('/v1/session', { secret })) as Who
  } catch (error) {
    who.value = null
    if (!(error instanceof Refusal)) throw error
    signInTrouble.value = error
  }
}

export async function signOut(): Promise<void> {
  await post('/v1/session/end', {}).catch(() => undefined)
  // Anew from the start: nothing that was seen stays in the page, and no stream stays open.
  location.reload()
}
