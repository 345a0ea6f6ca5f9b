import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isRefusal } from '../../core/refusal.ts'
import { ask } from '../ask.ts'
import { useCalm } from '../data/asked.ts'
import { locks } from '../data/locks.ts'
import { tasks } from '../data/tasks.ts'
import { paletteOpen } from '../keys.ts'
import { hrefOf, VIEWS } from '../route.ts'

interface Goal {
  kind: string
  text: string
  href: string
}

const EACH_MAX = 6

/** Somewhere to go, found by what it is called: a view, a task, a lock, an agent. */
export function Palette() {
  const box = useRef<HTMLDialogElement>(null)
  const text = useSignal('')
  const at = useSignal(0)
  const calm = useCalm(text.value.trim())
  const more = useFound(calm)
  const isKnown = more !== undefined && calm === text.value.trim()
  // At once: the letters that follow the key are meant for it.
  useLayoutEffect(() => box.current!.showModal(), [])
  const goals = goalsFor(text.value.trim().toLowerCase(), more ?? [])
  const go = (goal: Goal | undefined) => {
    if (!goal) return
    box.current!.close()
    location.hash = goal.href
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') go(goals[at.value])
    else if (step !== undefined) at.value = (at.value + step + goals.length) % goals.length
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={box}
      class="dialog palette"
      aria-label="Go anywhere"
      onClose={() => (paletteOpen.value = false)}
    >
      <input
        class="search"
        role="combobox"
        aria-label="Go to a view, task, lock or agent"
        aria-expanded="true"
        aria-controls="goals"
        aria-activedescendant={goals[at.value] ? `goal-${at.value}` : undefined}
        placeholder="Go to a view, task, lock or agent"
        value={text.value}
        onInput={(event) => ([text.value, at.value] = [event.currentTarget.value, 0])}
        onKeyDown={press}
      />
      <ul id="goals" role="listbox" aria-label="Where to go">
        {goals.map((goal, i) => (
          <li
            key={goal.href}
            id={`goal-${i}`}
            role="option"
            aria-selected={i === at.value}
            onClick={() => go(goal)}
          >
            <span class="dim">{goal.kind}</span> {goal.text}
          </li>
        ))}
      </ul>
      {goals.length === 0 && (
        <p class="dim pad">{isKnown ? 'Nothing is called that.' : 'Looking…'}</p>
      )}
    </dialog>
  )
}

/** Tasks that the page has not loaded are found by the server; undefined: it has not answered. */
function useFound(text: string): Goal[] | undefined {
  const found = useSignal<Goal[] | undefined>([])
  useEffect(() => {
    let isOver = false
    if (text === '') return void (found.value = [])
    found.value = undefined
    ask('task.peek', { text, limit: EACH_MAX }).then(
      ({ items }) => {
        if (!isOver)
          found.value = items.map(({ id, title }) => goalOf('task', id, `${id} ${title}`))
      },
      (error: unknown) => {
        if (!isRefusal(error, 'unavailable')) throw error
      },
    )
    return () => void (isOver = true)
  }, [text])
  return found.value
}

const PLACES = { task: 'tasks', lock: 'locks', agent: 'agents' } as const
const goalOf = (kind: keyof typeof PLACES, id: string, text = id): Goal => {
  return { kind, text, href: hrefOf(PLACES[kind], { id }) }
}

function goalsFor(text: string, more: Goal[]): Goal[] {
  const fits = (said: string) => said.toLowerCase().includes(text)
  const views = VIEWS.filter(fits).map((view) => ({ kind: 'view', text: view, href: hrefOf(view) }))
  if (text === '') return views
  const known = [...tasks.values()].filter(({ id, title }) => fits(`${id} ${title}`))
  const held = [...locks.values()]
  const agents = [...new Set(held.map(({ holder }) => holder))].filter(fits)
  const all = [
    ...views,
    ...known.slice(0, EACH_MAX).map(({ id, title }) => goalOf('task', id, `${id} ${title}`)),
    ...more,
    ...held
      .filter(({ name }) => fits(name))
      .slice(0, EACH_MAX)
      .map(({ name }) => goalOf('lock', name)),
    ...agents.slice(0, EACH_MAX).map((name) => goalOf('agent', name)),
  ]
  return [...new Map(all.map((goal) => [goal.href, goal])).values()].slice(0, 3 * EACH_MAX)
}
