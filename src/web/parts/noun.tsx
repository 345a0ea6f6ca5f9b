import type { ComponentChildren } from 'preact'
import { now } from '../data/asked.ts'
import { ago } from './words.ts'

/** A noun of the page, once: what lists, filters and searches need to know of it. */
export interface PageNoun<T> {
  one: string
  many?: string
  keyOf: (item: T) => string
  /** What a search looks through. */
  textOf: (item: T) => string
  columns: ListColumn<T>[]
  filters?: ListFilter<T>[]
  /** Filters that have a name of their own, the first unless another is chosen. */
  saved?: Record<string, Saved<T>>
  order?: (a: T, b: T) => number
  /** Said where there is none at all. */
  none: [title: string, says: string]
}

export interface ListColumn<T> {
  name: string
  /** A track of a grid: `6rem`, `minmax(12rem, 2fr)`. */
  width: string
  show: (item: T) => ComponentChildren
  /** What rows can be put in the order of. */
  order?: (item: T) => string | number
  /** There is no room for it on a phone. */
  wide?: boolean
}

/** A choice among the names that items have. */
interface ListFilter<T> {
  name: string
  of: (item: T) => string | null
  /** What is chosen from; without, all that items have. */
  choices?: readonly string[]
  says?: (choice: string) => string
}

interface Saved<T> {
  name: string
  fits: (item: T) => boolean
  /** How they are ordered unless the person says otherwise. */
  order?: (a: T, b: T) => number
}

export const by =
  <T,>(pick: (item: T) => string | number, sign: 1 | -1 = 1) =>
  (a: T, b: T) => {
    const [x, y] = [pick(a), pick(b)]
    return x === y ? 0 : x < y ? -sign : sign
  }

type ColumnLook = Pick<ListColumn<never>, 'name' | 'width' | 'wide'>

/** A column of what matters less than what the row is about. */
export const dim = <T,>(look: ColumnLook, of: (item: T) => string | null): ListColumn<T> => ({
  ...look,
  order: (item) => of(item) ?? '',
  show: (item) => <span class="dim">{of(item)}</span>,
})

/** A column of how long ago something was. */
export const since = <T,>(look: ColumnLook, of: (item: T) => string): ListColumn<T> => ({
  ...look,
  order: of,
  show: (item) => <span class="dim number">{ago(of(item), now.value)}</span>,
})
