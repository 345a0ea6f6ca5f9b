import type { ComponentChildren } from 'preact'
import { isAdmin, mayWork } from '../session.ts'

/** Something that a person may do; it asks first. */
export interface Act {
  says: string
  act: () => void
  /** For those who do not see what it stands beside. */
  label?: string
  kind?: 'primary' | 'quiet' | 'danger-quiet'
  admin?: boolean
}

/** Of these, what the person who looks may do. */
export const mine = (acts: Act[]) => acts.filter(({ admin }) => (admin ? isAdmin() : mayWork()))

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
export interface ListFilter<T> {
  name: string
  of: (item: T) => string | null
  /** What is chosen from; without, all that items have. */
  choices?: readonly string[]
  says?: (choice: string) => string
}

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

interface Saved<T> {
  name: string
  fits: (item: T) => boolean
  /** How they are ordered unless the person says otherwise. */
  order?: (a: T, b: T) => number
}

export const by =
  <T>(pick: (item: T) => string | number, sign: 1 | -1 = 1) =>
  (a: T, b: T) => {
    const [x, y] = [pick(a), pick(b)]
    return x === y ? 0 : x < y ? -sign : sign
  }
