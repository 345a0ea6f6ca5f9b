import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { param, wanted } from '../route.ts'
import { isNarrow } from '../theme.ts'
import { Button } from './buttons.tsx'
import { Empty } from './empty.tsx'
import { Search, Select, Tabs } from './frame.tsx'
import { by, type PageNoun } from './resource.ts'
import { Virtual } from './virtual.tsx'
import { count } from './words.ts'

const ROW = { wide: 38, narrow: 62 }
const CHOICES_MAX = 500

/** The column that rows are in the order of; with a minus, from the last on. */
const sort = param('sort', '')
const show = param('show', '')

const savedOf = <T,>({ saved = {} }: PageNoun<T>) => saved[show.value] ?? Object.values(saved)[0]

/** What of these is looked for, in the order that was chosen. */
export function found<T>(of: PageNoun<T>, items: T[]): T[] {
  const text = wanted.value.trim().toLowerCase()
  const saved = savedOf(of)
  const chosen = (of.filters ?? []).map((each) => [each, param(each.name, '').value] as const)
  const asked = chosen.filter(([, value]) => value !== '')
  // Who looks for something by name means all there is, unless they chose.
  const isSaved = saved !== undefined && (text === '' || show.value !== '')
  const fits = (item: T) =>
    (!isSaved || saved.fits(item)) &&
    asked.every(([filter, value]) => filter.of(item) === value) &&
    (text === '' || of.textOf(item).toLowerCase().includes(text))
  const named = sort.value.replace(/^-/, '')
  const column = of.columns.find(({ name }) => name === named)
  const order = column?.order
    ? by(column.order, sort.value.startsWith('-') ? -1 : 1)
    : (saved?.order ?? of.order)
  const all = items.filter(fits)
  return order ? all.toSorted(order) : all
}

interface FiltersProps<T> {
  of: PageNoun<T>
  items: T[]
  /** What it says of how many there are. */
  says: string
  children?: ComponentChildren
}

/** What to look for: saved filters, a search, and a choice for each filter. */
export function Filters<T>({ of, items, says, children }: FiltersProps<T>) {
  const { saved, filters = [], many = `${of.one}s` } = of
  const names = Object.entries(saved ?? {}).map(([key, { name }]) => [key, name])
  return (
    <div class="filters">
      {saved && (
        <Tabs
          label="Saved filters"
          tabs={Object.fromEntries(names) as Record<string, string>}
          chosen={show.value || names[0]![0]!}
          choose={(key) => (show.value = key === names[0]![0] ? '' : key)}
        />
      )}
      <Search label={`Search ${many}`} text={wanted} />
      {filters.map((filter) => (
        <Choice key={filter.name} {...{ filter, items }} />
      ))}
      {children}
      <span class="dim filters-says">{says}</span>
    </div>
  )
}

type ChoiceProps<T> = { filter: NonNullable<PageNoun<T>['filters']>[number]; items: T[] }

function Choice<T>({ filter: { name, of, choices, says }, items }: ChoiceProps<T>) {
  const chosen = param(name, '')
  const names = choices ?? [...new Set(items.flatMap((each) => of(each) || []))].toSorted()
  // What the address names is among them, known or not.
  const all = [...new Set(['', chosen.value, ...names])]
  return (
    <Select
      label={name[0]!.toUpperCase() + name.slice(1)}
      of={all.slice(0, CHOICES_MAX)}
      chosen={chosen.value}
      choose={(to) => (chosen.value = to)}
      says={(each) => (each === '' ? `Any ${name}` : (says?.(each) ?? each))}
    />
  )
}

interface ListProps<T> {
  of: PageNoun<T>
  /** Those that were found, in order. */
  items: T[]
  label: string
  /** Which is open beside it. */
  open?: string | null
  /** All are loaded: from now on rows stay where somebody looks. */
  isWhole?: boolean
  /** Told which are on screen. */
  shown?: (items: T[]) => void
  /** Of those that follow, only that there are more is said. */
  max?: number
}

/** Items of one kind, line by line: as many as there are, of which only what is seen exists. */
export function List<T>({ of, items, label, open, isWhole = true, shown, max }: ListProps<T>) {
  const isPointed = useSignal(false)
  const isScrolled = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const calls = useSignal(0)
  const isHeld = isWhole && (isPointed.value || isScrolled.value)
  const asked = `${location.hash.replace(/[?&]id=[^&]*/, '')} ${calls.value}`
  const held = useHeld(items, of.keyOf, isHeld, asked)
  const tracks = of.columns.map(({ width }) => width).join(' ')
  const style = isNarrow.value ? {} : { gridTemplateColumns: tracks }
  const row = (item: T) => {
    const state = of.keyOf(item) === open ? 'is-open' : held.isGone(item) ? 'is-gone' : ''
    return <Row {...{ of, item, state, style }} />
  }
  const pointer = {
    onPointerEnter: () => (isPointed.value = true),
    onPointerLeave: () => (isPointed.value = false),
  }
  const rest = max === undefined ? 0 : items.length - max
  return (
    <div class="list" {...pointer}>
      <Heads of={of} style={style} />
      {held.fresh > 0 && (
        <Button
          kind="fresh"
          act={() => {
            calls.value += 1
            box.current?.scrollTo({ top: 0 })
          }}
        >
          {held.fresh.toLocaleString()} new ↑
        </Button>
      )}
      <div class="list-body">
        {max === undefined ? (
          <Virtual
            items={held.rows}
            row={isNarrow.value ? ROW.narrow : ROW.wide}
            label={label}
            keyOf={of.keyOf}
            boxRef={box}
            scrolled={() => (isScrolled.value = box.current!.scrollTop > 0)}
            render={row}
            {...(shown && { shown })}
          />
        ) : (
          <ul class="rows" aria-label={label}>
            {held.rows.slice(0, max).map((item) => (
              <li key={of.keyOf(item)}>{row(item)}</li>
            ))}
          </ul>
        )}
      </div>
      {rest > 0 && <p class="dim pad">and {rest.toLocaleString()} more</p>}
    </div>
  )
}

interface RowProps<T> extends HeadsProps<T> {
  item: T
  state: string
}

const Row = <T,>({ of, item, state, style }: RowProps<T>) => (
  <div class={`row ${state}`} style={style}>
    {of.columns.map(({ name, show: cell, wide }) =>
      wide && isNarrow.value ? null : (
        <span key={name} class="cell">
          {cell(item)}
        </span>
      ),
    )}
  </div>
)

/** Rows that somebody points at, or has scrolled to, stay; what came meanwhile is only counted. */
function useHeld<T>(items: T[], keyOf: (item: T) => string, isHeld: boolean, asked: string) {
  const last = useRef<{ rows: Map<string, T>; asked: string }>(undefined)
  const before = last.current
  if (!isHeld || before?.asked !== asked || !items.some((each) => before.rows.has(keyOf(each)))) {
    last.current = { rows: new Map(items.map((each) => [keyOf(each), each])), asked }
    return { rows: items, fresh: 0, isGone: () => false }
  }
  const now = new Map(items.map((each) => [keyOf(each), each]))
  // What follows the last that was known moves nothing.
  const known = items.findLastIndex((each) => before.rows.has(keyOf(each))) + 1
  const fresh = items.slice(0, known).filter((each) => !before.rows.has(keyOf(each))).length
  const stay = [...before.rows].map(([key, was]) => now.get(key) ?? was)
  const rows = [...stay, ...items.slice(known)]
  last.current = { rows: new Map(rows.map((each) => [keyOf(each), each])), asked }
  return { rows, fresh, isGone: (item: T) => !now.has(keyOf(item)) }
}

interface HeadsProps<T> {
  of: PageNoun<T>
  style: { gridTemplateColumns?: string }
}

/** Names of columns; rows are put in the order of the one that is pressed. */
function Heads<T>({ of, style }: HeadsProps<T>) {
  if (isNarrow.value) return null
  const next = (name: string) =>
    sort.value === name ? `-${name}` : sort.value === `-${name}` ? '' : name
  return (
    <div class="row heads" style={style}>
      {of.columns.map(({ name, order }) => {
        const mark = sort.value === name ? ' ↓' : sort.value === `-${name}` ? ' ↑' : ''
        return order ? (
          <button
            key={name}
            type="button"
            aria-label={`Order by ${name}`}
            aria-pressed={mark !== ''}
            onClick={() => (sort.value = next(name))}
          >
            {name}
            {mark}
          </button>
        ) : (
          <span key={name}>{name.startsWith('_') ? '' : name}</span>
        )
      })}
    </div>
  )
}

interface ListingProps<T> extends Omit<ListProps<T>, 'items' | 'label'> {
  items: T[]
  says?: string
  tools?: ComponentChildren
  /** What is open, beside the list. */
  sheet?: ComponentChildren
}

/** What to look for, what was found, and what of it is open. */
export function Listing<T>({ of, items, says, tools, sheet, ...more }: ListingProps<T>) {
  const all = found(of, items)
  const { one, many = `${one}s`, none } = of
  const counted =
    all.length === items.length
      ? count(items.length, one, many)
      : `${all.length.toLocaleString()} of ${count(items.length, one, many)}`
  return (
    <>
      <Filters of={of} items={items} says={says ?? counted}>
        {tools}
      </Filters>
      <div class="split">
        <div class="panel is-list">
          {items.length === 0 && more.isWhole !== false ? (
            <Empty title={none[0]}>{none[1]}</Empty>
          ) : (
            <List of={of} items={all} label={many[0]!.toUpperCase() + many.slice(1)} {...more} />
          )}
        </div>
        {sheet}
      </div>
    </>
  )
}

/** Which of many are chosen, for what is done to all of them. */
export function toggled(chosen: Signal<ReadonlySet<string>>, key: string): void {
  const next = new Set(chosen.value)
  if (!next.delete(key)) next.add(key)
  chosen.value = next
}
