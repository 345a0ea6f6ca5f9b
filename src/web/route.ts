import { signal } from '@preact/signals'

export const VIEWS = ['now', 'work', 'who', 'history', 'knowledge', 'settings'] as const
export type ViewName = (typeof VIEWS)[number]

interface Route {
  view: ViewName
  params: URLSearchParams
}

/** Where the page is: `#/work?id=42`. Behind the # nothing reaches the server or its logs. */
export const route = signal<Route>(routeIn(location.hash))

window.addEventListener('hashchange', () => (route.value = routeIn(location.hash)))

function routeIn(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const view = VIEWS.find((each) => each === path) ?? 'now'
  return { view, params: new URLSearchParams(query) }
}

type Params = Record<string, string | null>

export function hrefOf(view: ViewName, params: Params = {}): string {
  const said = Object.entries(params).filter(([, value]) => value !== null && value !== '')
  const query = new URLSearchParams(said as [string, string][]).toString()
  return `#/${view}${query === '' ? '' : `?${query}`}`
}

/** Where the page would be with these parameters of its view changed; what is null goes away. */
export function hrefWith(params: Params): string {
  const { view, params: before } = route.value
  return hrefOf(view, { ...Object.fromEntries(before), ...params })
}

export function go(view: ViewName, params: Params = {}): void {
  location.hash = hrefOf(view, params)
}

export function adjust(params: Params): void {
  location.hash = hrefWith(params)
}

/** Frames in which a view that was left for another may show itself again. */
const FRAMES = 60

/** Closes what is open in this view; the keyboard goes back to where it was opened. */
export function leave(): void {
  const id = route.value.params.get('id')
  if (id === null) return
  adjust({ id: null, run: null, scope: null })
  const focus = (frames: number) => {
    const from = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`)
    if (from || frames === 0) (from ?? document.querySelector<HTMLElement>('h1'))?.focus()
    else requestAnimationFrame(() => focus(frames - 1))
  }
  // The view is shown anew first.
  window.addEventListener('hashchange', () => focus(FRAMES), { once: true })
}

/** A part of the address, as a signal: what was chosen is kept by a reload, and by a link. */
export function param<K extends string = string>(name: string, initial: NoInfer<K>): { value: K } {
  return {
    get value() {
      return (route.value.params.get(name) as K | null) ?? initial
    },
    // Without a step to go back to: for what is typed or chosen among many.
    set value(to: K) {
      history.replaceState(null, '', hrefWith({ [name]: to === initial ? null : to }))
      route.value = routeIn(location.hash)
    },
  }
}

/** What is looked for in the view that is shown, and what of it is open. */
export const wanted = param('q', '')
export const opened = () => route.value.params.get('id')
