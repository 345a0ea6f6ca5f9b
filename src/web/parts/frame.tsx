import type { ComponentChildren } from 'preact'
import type { Refusal } from '../../core/refusal.ts'
import { leave } from '../route.ts'
import { Icon } from './icon.tsx'

/** The parts that every view is laid out with. */

interface PanelProps {
  title: string
  /** Beside the title: a number, a control. */
  aside?: ComponentChildren
  class?: string
  children: ComponentChildren
}

interface PageProps extends PanelProps {
  /** Above the title: where it belongs, how it stands. */
  above?: ComponentChildren
}

export function Panel({ title, aside, class: more = '', children }: PanelProps) {
  return (
    <section class={`panel ${more}`} aria-label={title}>
      <header class="panel-head">
        <h2>{title}</h2>
        {aside && <div class="panel-aside">{aside}</div>}
      </header>
      {children}
    </section>
  )
}

export function Page({ title, above, aside, children, class: more = '' }: PageProps) {
  return (
    <div class={`page ${more}`}>
      {above}
      <header class="page-head">
        <h1 tabIndex={-1}>{title}</h1>
        <div class="page-aside">{aside}</div>
      </header>
      {children}
    </div>
  )
}

export type ShownFact = [name: string, value: ComponentChildren]

interface SheetProps {
  /** What it is, for those who do not see it: `Lock git:web`. */
  label: string
  title?: string
  badge?: ComponentChildren
  children: ComponentChildren
}

/** One thing beside its list: what it is, what can be done, and all that is known of it. */
export function Sheet({ label, title = label, badge, children }: SheetProps) {
  return (
    <aside class="panel sheet" aria-label={label}>
      <header class="panel-head">
        <h2>{title}</h2>
        {badge}
        <button type="button" class="icon-button" aria-label="Close" onClick={leave}>
          <Icon name="close" />
        </button>
      </header>
      <div class="sheet-body">{children}</div>
    </aside>
  )
}

interface SectionProps {
  title: string
  /** What it lists, where that is all there is to it: without any, it is not there. */
  of?: ComponentChildren[]
  children?: ComponentChildren
}

export function Section({ title, of, children }: SectionProps) {
  if (of?.length === 0) return null
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {of && <ul class="links">{of}</ul>}
      {children}
    </section>
  )
}

/** Names and what they stand for; what is not known is left out. */
export const Facts = ({ of }: { of: ShownFact[] }) => (
  <dl class="facts">
    {of
      .filter(([, value]) => value !== null && value !== undefined && value !== false)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

interface TableProps {
  label: string
  head: string[]
  rows: ComponentChildren[][]
}

export function Table({ label, head, rows }: TableProps) {
  if (rows.length === 0) return <p class="dim pad">Nothing in this time.</p>
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>{head.map((name, i) => (name ? <th key={i}>{name}</th> : <td key={i} />))}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, column) => (
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface TabsProps<K extends string> {
  label: string
  tabs: Record<K, string>
  chosen: K
  choose: (key: K) => void
}

export function Tabs<K extends string>({ label, tabs, chosen, choose }: TabsProps<K>) {
  const keys = Object.keys(tabs) as K[]
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined) return
    const next = (keys.indexOf(chosen) + by + keys.length) % keys.length
    event.preventDefault()
    choose(keys[next]!)
    ;((event.currentTarget as HTMLElement).children[next] as HTMLElement).focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {keys.map((key) => (
        <button
          key={key}
          type="button"
          role="tab"
          class="tab"
          aria-selected={key === chosen}
          tabIndex={key === chosen ? 0 : -1}
          onClick={() => choose(key)}
        >
          {tabs[key]}
        </button>
      ))}
    </div>
  )
}

interface SearchProps {
  label: string
  text: { value: string }
  onKeyDown?: (event: KeyboardEvent) => void
}

export const Search = ({ label, text, onKeyDown }: SearchProps) => (
  <input
    class="search"
    type="search"
    placeholder={label}
    aria-label={label}
    value={text.value}
    onInput={(event) => (text.value = event.currentTarget.value)}
    {...(onKeyDown && { onKeyDown })}
  />
)

interface SelectProps<K extends string> {
  label: string
  of: readonly K[]
  chosen: K
  choose: (key: K) => void
  /** How a choice is shown, unless as it is. */
  says?: (key: K) => string
}

export const Select = <K extends string>({ label, of, chosen, choose, says }: SelectProps<K>) => (
  <select
    aria-label={label}
    value={chosen}
    onChange={(event) => choose(event.currentTarget.value as K)}
  >
    {of.map((each) => (
      <option key={each} value={each}>
        {says ? says(each) : each}
      </option>
    ))}
  </select>
)

interface TileProps {
  name: string
  value: string | number
  says: string
  children?: ComponentChildren
}

export const Tile = ({ name, value, says, children }: TileProps) => (
  <div class="tile">
    <span class="tile-name">{name}</span>
    <span class="tile-value number">
      {typeof value === 'number' ? value.toLocaleString() : value}
    </span>
    {children}
    <span class="dim">{says}</span>
  </div>
)

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children && <p>{children}</p>}
  </div>
)

/** Nothing is said of what is not known yet. */
export const Loading = () => (
  <p class="dim pad" role="status">
    Loading…
  </p>
)

/** A refusal as people can use it: what happened, why, what to do next. */
export function Trouble({ refusal }: { refusal: Refusal | null }) {
  if (!refusal) return null
  return (
    <div class="trouble" role="alert">
      <strong>{refusal.message}</strong>
      {refusal.next && <span>{refusal.next}</span>}
    </div>
  )
}

interface AnsweredProps<T> {
  of: { value: T | undefined; refusal: Refusal | null }
  children: (value: T) => ComponentChildren
}

/** What was asked for, once it is known; until then that it is not, or why. */
export const Answered = <T,>({ of: { value, refusal }, children }: AnsweredProps<T>) => (
  <>
    <Trouble refusal={refusal} />
    {value === undefined ? !refusal && <Loading /> : children(value)}
  </>
)
