import type { AnswerOf, InputOf } from '../operations/registry.ts'
import { toldBy } from '../client/sse.ts'
import type { Told } from '../client/transport.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import type { Registered } from '../operations/registry.ts'

export type Name = Registered['name']

/** The server says something every 15 s: one that is silent for longer than this is gone. */
const SILENT_MS = 45_000

/** When the server last said anything at all, on the clock of this page. */
export const heard = { ms: performance.now() }
const hear = () => (heard.ms = performance.now())

/** How far the server's clock is ahead of this one, as far as its answers tell. */
let ahead_ms = 0
/** The time on the server's clock: what it tells the time of is compared with nothing else. */
export const clock = () => Date.now() + ahead_ms

/** An answer says its second, and came between two moments of this clock. */
function compareClocks(response: Response, sent_ms: number): void {
  const at = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(at)) return
  ahead_ms = Math.max(at - Date.now(), Math.min(at + 1_000 - sent_ms, ahead_ms))
}

/** Told to the window, with what it said, when the server does not know us any more. */
export const SIGNED_OUT = 'leasehold-signed-out'

/** Calls an operation. Throws a `Refusal`; `unavailable` when nobody answers. */
export function ask<N extends Name>(
  name: N,
  input?: InputOf<N>,
  signal?: AbortSignal,
): Promise<AnswerOf<N>> {
  return post(`/v1/${name}`, input ?? {}, signal) as Promise<AnswerOf<N>>
}

type Paged = {
  [N in Name]: AnswerOf<N> extends { items: unknown[]; next: string | null } ? N : never
}[Name]

/** Asks page by page, from the first on. */
export async function* pagesOf<N extends Paged>(
  name: N,
  input: InputOf<N>,
  signal?: AbortSignal,
): AsyncGenerator<AnswerOf<N>> {
  for (let after: string | null | undefined; after !== null;) {
    const more = after === undefined ? {} : { after }
    const page: AnswerOf<N> = await ask(name, { ...input, ...more }, signal)
    yield page
    after = (page as { next: string | null }).next
  }
}

/** A change under an id of its own: asked twice because a reply was lost, it is done once. */
export function change<N extends Name>(name: N, input: InputOf<N>): Promise<AnswerOf<N>> {
  return ask(name, { request_id: crypto.randomUUID(), ...input })
}

export async function post(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
  return answerOf(
    await send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    }),
  )
}

export async function get(path: string): Promise<unknown> {
  return answerOf(await send(path, {}))
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const sent_ms = Date.now()
  try {
    const response = await fetch(path, init)
    hear()
    compareClocks(response, sent_ms)
    return response
  } catch {
    throw new Refusal('unavailable', 'The server does not answer', {
      next: 'Start it (leasehold up). This page connects by itself.',
    })
  }
}

/** Makes the server say something, however little. */
export const probe = () => send('/healthz', { cache: 'no-store' }).catch(() => undefined)

async function answerOf(response: Response): Promise<unknown> {
  const reply: unknown = await response.json().catch(() => ({}))
  if (response.ok) return reply
  const refusal = Refusal.from(reply, response.status)
  if (isRefusal(refusal, 'unauthorized'))
    window.dispatchEvent(new CustomEvent(SIGNED_OUT, { detail: refusal }))
  throw refusal
}

/** What happens from now on, or behind `after`, as long as the connection lasts. */
export async function* follow(after: string | undefined): AsyncGenerator<Told> {
  const ending = new AbortController()
  const headers = after === undefined ? {} : { 'last-event-id': after }
  const response = await send('/v1/events', { headers, signal: ending.signal })
  if (!response.ok) await answerOf(response)
  try {
    yield* toldBy(textOf(response.body!, () => ending.abort()))
  } finally {
    ending.abort()
  }
}

async function* textOf(body: ReadableStream<Uint8Array>, cut: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let silence = setTimeout(cut, SILENT_MS)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      hear()
      clearTimeout(silence)
      silence = setTimeout(cut, SILENT_MS)
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    clearTimeout(silence)
  }
}
