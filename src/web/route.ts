import { signal } from '@preact/signals'

export const VIEWS = [
  'now',
  'tasks',
  'locks',
  'branches',
  'timeline',
  'memory',
  'agents',
  'events',
  'stats',
] as const
export type ViewName = (typeof VIEWS)[number]

export interface Route {
  view: ViewName
  params: URLSearchParams
}

/** Where the page is: `#/tasks?id=42`. Behind the # nothing reaches the server or its logs. */
export const route = signal<Route>(routeIn(location.hash))

window.addEventListener('hashchange', () => (route.value = routeIn(location.hash)))

function routeIn(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const view = VIEWS.find((each) => each === path) ?? 'now'
  return { view, params: new URLSearchParams(query) }
}

export function hrefOf(view: ViewName, params: Record<string, string | null> = {}): string {
  const said = Object.entries(params).filter(([, value]) => value !== null && value !== '')
  const query = new URLSearchParams(said as [string, string][]).toString()
  return `#/${view}${query === '' ? '' : `?${query}`}`
}

export function go(view: ViewName, params: Record<string, string | null> = {}): void {
  location.hash = hrefOf(view, params)
}

/** Changes parameters of the view that is shown; what is null goes away. */
export function adjust(params: Record<string, string | null>): void {
  const { view, params: before } = route.value
  go(view, { ...Object.fromEntries(before), ...params })
}

/** Frames in which a view that was left for another may show itself again. */
const FRAMES = 60

/** Closes what is open in this view; the keyboard goes back to where it was opened. */
export function leave(): void {
  const id = route.value.params.get('id')
  if (id === null) return
  adjust({ id: null, run: null, scope: null, part: null })
  const focus = (frames: number) => {
    const from = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`)
    if (from || frames === 0) (from ?? document.querySelector<HTMLElement>('h1'))?.focus()
    else requestAnimationFrame(() => focus(frames - 1))
  }
  // The view is shown anew first.
  window.addEventListener('hashchange', () => focus(FRAMES), { once: true })
}

/** The same without a step to go back to: for what is typed or chosen among many. */
function replace(params: Record<string, string | null>): void {
  const { view, params: before } = route.value
  history.replaceState(null, '', hrefOf(view, { ...Object.fromEntries(before), ...params }))
  route.value = routeIn(location.hash)
}

/** A part of the address, as a signal: what was chosen is kept by a reload, and by a link. */
export function param<K extends string = string>(name: string, initial: NoInfer<K>): { value: K } {
  return {
    get value() {
      return (route.value.params.get(name) as K | null) ?? initial
    },
    set value(to: K) {
      replace({ [name]: to === initial ? null : to })
    },
  }
}

/** What is looked for in the view that is shown. */
export const wanted = param('q', '')
