import type { ComponentChildren } from 'preact'

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

interface TabsProps<K extends string> {
  label: string
  tabs: Record<K, string>
  chosen: K
  choose: (key: K) => void
}

export function Tabs<K extends string>({ label, tabs, chosen, choose }: TabsProps<K>) {
  const keys = Object.keys(tabs) as K[]
  const move = (event: KeyboardEvent, by: number) => {
    const next = keys[(keys.indexOf(chosen) + by + keys.length) % keys.length]!
    event.preventDefault()
    choose(next)
    const list = (event.currentTarget as HTMLElement).parentElement!
    ;(list.children[keys.indexOf(next)] as HTMLElement).focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={label}>
      {keys.map((key) => (
        <button
          key={key}
          type="button"
          role="tab"
          class="tab"
          aria-selected={key === chosen}
          tabIndex={key === chosen ? 0 : -1}
          onClick={() => choose(key)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowRight') move(event, 1)
            if (event.key === 'ArrowLeft') move(event, -1)
          }}
        >
          {tabs[key]}
        </button>
      ))}
    </div>
  )
}

export function Search({ label, text }: { label: string; text: { value: string } }) {
  return (
    <input
      class="search"
      type="search"
      placeholder={label}
      aria-label={label}
      value={text.value}
      onInput={(event) => (text.value = event.currentTarget.value)}
    />
  )
}

interface SelectProps<K extends string> {
  label: string
  of: readonly K[]
  chosen: K
  choose: (key: K) => void
  /** How a choice is shown, unless as it is. */
  says?: (key: K) => string
}

export function Select<K extends string>({ label, of, chosen, choose, says }: SelectProps<K>) {
  return (
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
}

interface TileProps {
  name: string
  value: string | number
  says: string
  children?: ComponentChildren
}

export function Tile({ name, value, says, children }: TileProps) {
  return (
    <div class="tile">
      <span class="tile-name">{name}</span>
      <span class="tile-value number">
        {typeof value === 'number' ? value.toLocaleString() : value}
      </span>
      {children}
      <span class="dim">{says}</span>
    </div>
  )
}

export type ShownFact = [name: string, value: ComponentChildren]

/** Names and what they stand for; what is not known is left out. */
export function Facts({ of }: { of: ShownFact[] }) {
  return (
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
}
