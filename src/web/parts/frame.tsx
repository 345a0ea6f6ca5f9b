import type { ComponentChildren } from 'preact'

interface PanelProps {
  title: string
  /** Beside the title: a number, a control. */
  aside?: ComponentChildren
  class?: string
  children: ComponentChildren
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

export function Page({ title, aside, children, class: more = '' }: PanelProps) {
  return (
    <div class={`page ${more}`}>
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

interface SearchProps {
  label: string
  value: string
  change: (text: string) => void
}

export function Search({ label, value, change }: SearchProps) {
  return (
    <input
      class="search"
      type="search"
      placeholder={label}
      aria-label={label}
      value={value}
      onInput={(event) => change(event.currentTarget.value)}
    />
  )
}
