import { type Signal, signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import type { InputOf } from '../../operations/registry.ts'
import { ask, clock, type Name } from '../ask.ts'
import { listen, type ShownEvent } from './live.ts'

/** However fast things happen, nothing is asked again sooner than this. */
const CALM_MS = 400
/** How long to leave a server alone that does not answer. */
const AWAY_MS = 2_000

export interface LiveAnswer<T> {
  value: T | undefined
  /** Why there is none, or none that is newer. */
  refusal: Refusal | null
}

interface How {
  /** Which events make the answer out of date (default: none). */
  affects?: (event: ShownEvent) => boolean
  /** For what changes without an event: asked so often while the page is looked at. */
  every_ms?: number
  calm_ms?: number
}

/** Asks when shown and when `key` changes, and again when something happens to what was asked. */
export function useAsked<T>(
  key: string,
  fetch: (signal: AbortSignal) => Promise<T>,
  how: How = {},
): LiveAnswer<T> {
  const value = useSignal<T | undefined>(undefined)
  const refusal = useSignal<Refusal | null>(null)
  const latest = useRef({ fetch, how })
  latest.current = { fetch, how }
  useEffect(() => {
    const { every_ms, calm_ms } = latest.current.how
    const asking = askInto(value, refusal, (ending) => latest.current.fetch(ending), calm_ms)
    const unlisten = listen({
      events: (events) => {
        const { affects } = latest.current.how
        if (affects && events.some(affects)) asking.soon()
      },
      reset: () => asking.soon(),
    })
    const timer = setInterval(() => document.hidden || asking.soon(), every_ms ?? 2 ** 30)
    asking.soon()
    return () => {
      asking.end()
      unlisten()
      clearInterval(timer)
    }
  }, [key])
  return { value: value.value, refusal: refusal.value }
}

/** The answer of an operation, as long as it is shown. */
export const useAnswer = <N extends Name>(name: N, input: InputOf<N>, how?: How) =>
  useAsked(`${name} ${JSON.stringify(input)}`, (ending) => ask(name, input, ending), how)

/** Which events make an answer out of date: those about one of these. */
export const aboutAny =
  (...nouns: string[]) =>
  ({ type }: ShownEvent) =>
    nouns.some((noun) => type.startsWith(`${noun}.`))

export const aboutTask = (id: string) => (event: ShownEvent) =>
  event.task === id || event.lock === `task:${id}`

/** The text, once the person who types it has paused. */
export function useCalm(text: string): string {
  const calm = useSignal(text)
  useEffect(() => {
    const timer = setTimeout(() => (calm.value = text), CALM_MS / 2)
    return () => clearTimeout(timer)
  }, [text])
  return calm.value
}

/**
 * Does something at once, but never twice at a time, and with calm in between. What a server could
 * not answer is done again a little later.
 */
export class Repeated {
  private readonly ending = new AbortController()
  private isBusy = false
  private isWanted = false

  constructor(
    private readonly work: (signal: AbortSignal) => Promise<void>,
    private readonly calm_ms = CALM_MS,
  ) {}

  get isOver(): boolean {
    return this.ending.signal.aborted
  }

  /** Nobody waits for it any more: what is asked is cancelled. */
  end(): void {
    this.ending.abort()
  }

  soon(): void {
    this.isWanted = true
    if (!this.isBusy && !this.isOver) void this.run()
  }

  private async run(): Promise<void> {
    this.isBusy = true
    while (this.isWanted && !this.isOver) {
      this.isWanted = false
      const calm_ms = await this.work(this.ending.signal).then(
        () => this.calm_ms,
        (error: unknown) => this.failed(error),
      )
      if (this.isOver) return
      await new Promise((resolve) => setTimeout(resolve, calm_ms))
    }
    this.isBusy = false
  }

  private failed(error: unknown): number {
    // Whoever is signed out, or may not ask this, is told the same again.
    const isFinal = isRefusal(error, 'unauthorized') || isRefusal(error, 'forbidden')
    if (!(error instanceof Refusal) || isFinal) {
      if (!this.isOver) console.error(error)
      return CALM_MS
    }
    this.isWanted = true
    return AWAY_MS
  }
}

/** Nothing is wrong with what was asked: the same is answered later. */
const isAway = (error: unknown) =>
  isRefusal(error, 'unavailable') || isRefusal(error, 'rate_limited')

/** Asks for a value, again and again; why there is none is kept beside it. */
export function askInto<T>(
  value: Signal<T | undefined>,
  refusal: Signal<Refusal | null>,
  fetch: (signal: AbortSignal) => Promise<T>,
  calm_ms?: number,
): Repeated {
  const asking: Repeated = new Repeated(async (ending) => {
    try {
      const got = await fetch(ending)
      if (!asking.isOver) [value.value, refusal.value] = [got, null]
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (!asking.isOver) refusal.value = error
      if (isAway(error)) throw error
    }
  }, calm_ms)
  return asking
}

const NAMED_MAX = 100

/** Asks about what something happened to, and only about that, many names at a time. */
export class Dirty {
  private readonly names = new Set<string>()
  private readonly asking = new Repeated(() => this.askAll())

  constructor(private readonly look: (names: string[]) => Promise<void>) {}

  add(name: string): void {
    this.names.add(name)
    this.asking.soon()
  }

  private async askAll(): Promise<void> {
    // What is added in the same turn is asked for together.
    await Promise.resolve()
    while (this.names.size > 0) {
      const names = [...this.names].slice(0, NAMED_MAX)
      for (const name of names) this.names.delete(name)
      await this.look(names).catch((error: unknown) => {
        for (const name of names) this.names.add(name)
        throw error
      })
    }
  }
}

/** One clock for all that counts down, standing still while nobody looks. */
export const now = signal(clock())
setInterval(() => {
  if (!document.hidden) now.value = clock()
}, 1_000)
