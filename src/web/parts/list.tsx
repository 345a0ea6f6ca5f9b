import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { opened, param, wanted } from '../route.ts'
import { isNarrow } from '../theme.ts'
import { Button } from './acts.tsx'
import { Empty, Search, Select, Tabs } from './frame.tsx'
import { by, type PageNoun } from './noun.tsx'
import { Virtual } from './virtual.tsx'
import { count } from './words.ts'

const ROW = { wide: 38, narrow: 62 }
const CHOICES_MAX = 500

/** The column that rows are in the order of; with a minus, from the last on. */
const sort = param('sort', '')
const show = param('show', '')

/** What of these is looked for, in the order that was chosen. */
export function found<T>(of: PageNoun<T>, items: T[]): T[] {
  const text = wanted.value.trim().toLowerCase()
  const saved = of.saved && (of.saved[show.value] ?? Object.values(of.saved)[0])
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
}

/** Items of one kind, line by line: as many as there are, of which only what is seen exists. */
export function List<T>({ of, items, label, open, isWhole = true, shown }: ListProps<T>) {
  const isScrolled = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const held = useHeld(items, of.keyOf, isWhole ? isScrolled.value : 'never')
  const style = isNarrow.value
    ? {}
    : { gridTemplateColumns: of.columns.map(({ width }) => width).join(' ') }
  const row = (item: T) => {
    const state = of.keyOf(item) === open ? 'is-open' : held.isGone(item) ? 'is-gone' : ''
    return (
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
  }
  const top = () => box.current!.scrollTo({ top: 0 })
  return (
    <div class="list" {...held.pointer}>
      {!isNarrow.value && <Heads of={of} style={style} />}
      <Fresh n={held.fresh} act={() => held.release(top)} />
      <div class="list-body">
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
      </div>
    </div>
  )
}

interface RowsProps<T> {
  items: T[]
  keyOf: (item: T) => string
  render: (item: T) => ComponentChildren
  /** So many at most; where to see those that follow is said by `more`. */
  max: number
  more?: (n: number) => ComponentChildren
}

/** A short list of items that are more than one line each. */
export function Rows<T>({ items, keyOf, render, max, more }: RowsProps<T>) {
  const held = useHeld(items, keyOf, false)
  const rest = held.rows.length - max
  return (
    <div class="list-body" {...held.pointer}>
      <Fresh n={held.fresh} act={() => held.release()} />
      <ul class="rows">
        {held.rows.slice(0, max).map((item) => (
          <li key={keyOf(item)} class={held.isGone(item) ? 'is-gone' : ''}>
            {render(item)}
          </li>
        ))}
      </ul>
      {rest > 0 && <div class="pad">{more?.(rest) ?? `and ${rest.toLocaleString()} more`}</div>}
    </div>
  )
}

const Fresh = ({ n, act }: { n: number; act: () => void }) =>
  n > 0 && (
    <Button kind="fresh" act={act}>
      {n.toLocaleString()} new ↑
    </Button>
  )

/** Rows that somebody points at, or has scrolled to, stay; what came meanwhile is only counted. */
function useHeld<T>(items: T[], keyOf: (item: T) => string, scrolled: boolean | 'never') {
  const isPointed = useSignal(false)
  const calls = useSignal(0)
  const last = useRef<{ rows: Map<string, T>; asked: string }>(undefined)
  const isHeld = scrolled !== 'never' && (scrolled || isPointed.value)
  const asked = `${location.hash.replace(/[?&]id=[^&]*/, '')} ${calls.value}`
  const before = last.current
  const keyed = (of: T[]) => new Map(of.map((each) => [keyOf(each), each]))
  const now = keyed(items)
  let [rows, fresh] = [items, 0]
  if (isHeld && before?.asked === asked && items.some((each) => before.rows.has(keyOf(each)))) {
    // What follows the last that was known moves nothing.
    const known = items.findLastIndex((each) => before.rows.has(keyOf(each))) + 1
    fresh = items.slice(0, known).filter((each) => !before.rows.has(keyOf(each))).length
    const stay = [...before.rows].map(([key, was]) => now.get(key) ?? was)
    rows = [...stay, ...items.slice(known)]
  }
  last.current = { rows: rows === items ? now : keyed(rows), asked }
  return {
    rows,
    fresh,
    isGone: (item: T) => !now.has(keyOf(item)),
    /** Shows what came. */
    release: (then?: () => void) => {
      calls.value += 1
      then?.()
    },
    pointer: {
      onPointerEnter: () => (isPointed.value = true),
      onPointerLeave: () => (isPointed.value = false),
    },
  }
}

interface HeadsProps<T> {
  of: PageNoun<T>
  style: { gridTemplateColumns?: string }
}

/** Names of columns; rows are put in the order of the one that is pressed. */
function Heads<T>({ of, style }: HeadsProps<T>) {
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

interface ListingProps<T> {
  of: PageNoun<T>
  items: T[]
  says?: string
  tools?: ComponentChildren
  /** What is open, beside the list. */
  sheet: (id: string) => ComponentChildren
  /** By what a list knows what is open, where an id alone does not say. */
  open?: string
}

/** What to look for, what was found, and what of it is open. */
export function Listing<T>({ of, items, says, tools, sheet, open }: ListingProps<T>) {
  const all = found(of, items)
  const { one, many = `${one}s`, none } = of
  const id = opened()
  const counted =
    all.length === items.length
      ? count(items.length, one, many)
      : `${all.length.toLocaleString()} of ${count(items.length, one, many)}`
  const label = many[0]!.toUpperCase() + many.slice(1)
  return (
    <>
      <Filters of={of} items={items} says={says ?? counted}>
        {tools}
      </Filters>
      <div class="split">
        <div class="panel is-list">
          {items.length === 0 ? (
            <Empty title={none[0]}>{none[1]}</Empty>
          ) : (
            <List of={of} items={all} label={label} open={open ?? id} />
          )}
        </div>
        {id !== null && sheet(id)}
      </div>
    </>
  )
}
