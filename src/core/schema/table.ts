/**
 * Says of a table, once, what its rows are: as data, and as the type of a row. Everything else that
 * lists columns or indexes is made from this.
 */

/** How a value is kept. `instant`: the store's clock in ms. `bytes` are spelled `\\x` and hex. */
export type Kind = 'text' | 'int' | 'real' | 'bool' | 'json' | 'bytes' | 'instant'

interface Flags {
  /** Whether there may be no value. */
  isNullable?: true
  /** A claim, a renewal or an end changes it, and hardly anything else. */
  isHot?: true
  /** A long value: nobody remembers such rows from one batch to the next. */
  isApart?: true
  /** Not added up: something else tells when it was changed. */
  isUnsummed?: true
}

/** A column, and the type of its values. */
export class Column<Value> {
  declare readonly value: Value

  constructor(
    readonly kind: Kind,
    readonly flags: Flags = {},
  ) {}

  get orNull(): Column<Value | null> {
    return new Column(this.kind, { ...this.flags, isNullable: true })
  }

  get hot(): Column<Value> {
    return new Column(this.kind, { ...this.flags, isHot: true })
  }

  get apart(): Column<Value> {
    return new Column(this.kind, { ...this.flags, isApart: true })
  }

  get unsummed(): Column<Value> {
    return new Column(this.kind, { ...this.flags, isUnsummed: true })
  }
}

/* @__NO_SIDE_EFFECTS__ */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- narrows the column
export const text = <T extends string = string>(): Column<NoInfer<T>> => new Column('text')
/* @__NO_SIDE_EFFECTS__ */
export const int = (): Column<number> => new Column('int')
/* @__NO_SIDE_EFFECTS__ */
export const real = (): Column<number> => new Column('real')
/* @__NO_SIDE_EFFECTS__ */
export const bool = (): Column<boolean> => new Column('bool')
/* @__NO_SIDE_EFFECTS__ */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- narrows the column
export const json = <T = unknown>(): Column<NoInfer<T>> => new Column('json')
/* @__NO_SIDE_EFFECTS__ */
export const bytes = (): Column<string> => new Column('bytes')
/* @__NO_SIDE_EFFECTS__ */
export const instant = (): Column<number> => new Column('instant')

/** What a row must be to be in an index. */
export interface RowCondition<Name extends string = string> {
  column: Name
  is: 'null' | 'not null' | 'true'
}

export const isNull = <N extends string>(column: N) => ({ column, is: 'null' }) as const
export const notNull = <N extends string>(column: N) => ({ column, is: 'not null' }) as const
export const isTrue = <N extends string>(column: N) => ({ column, is: 'true' }) as const

/**
 * How rows are found when their keys are not known. A row is in an index under one group, or not
 * at all: where a column of its group is null, or `rows` does not fit. Within a group rows come by
 * `order`, then by key.
 */
export interface IndexOf<Name extends string = string> {
  rows?: readonly RowCondition<Name>[]
  group?: readonly Name[]
  order: Name
  /** The greatest first. */
  descends?: true
  /** Keys begin with the group and this sign, so that a store needs no index but that of keys. */
  prefix?: string
}

/** A column that follows from the others: made where a row is written, and in no row of a rule. */
export interface Derived<Row> {
  text?: (row: Row) => string | null
  instant?: (row: Row) => number | null
  bool?: (row: Row) => boolean
}

type Columns = Readonly<Record<string, Column<unknown>>>
type RowIn<C extends Columns> = { -readonly [Name in keyof C]: C[Name]['value'] }

export interface Table<
  C extends Columns = Columns,
  D extends string = string,
  I extends string = string,
> {
  /** Which column is the key of a row. */
  key: keyof C & string
  columns: C
  derived: Readonly<Record<D, Derived<RowIn<C>>>>
  indexes: Readonly<Record<I, IndexOf>>
  /** Whether rows can be made again from others, so that nobody has to notice a change. */
  isMadeAgain: boolean
  /** Whether a row may be long: a tree of such rows would be mostly empty pages. */
  isWide: boolean
}

interface Said<C extends Columns, D extends string, I extends string> {
  key: keyof C & string
  columns: C
  derived?: { [Name in D]: Derived<RowIn<C>> }
  indexes?: { [Name in I]: IndexOf<(keyof C & string) | NoInfer<D>> }
  isMadeAgain?: true
  isWide?: true
}

/* @__NO_SIDE_EFFECTS__ -- so that a bundle that uses no table has none: hooks start sooner. */
export function table<
  const C extends Columns,
  const D extends string = never,
  const I extends string = never,
>(said: Said<C, D, I>): Table<C, D, I> {
  const { derived = {}, indexes = {}, isMadeAgain = false, isWide = false } = said
  return { ...said, derived, indexes, isMadeAgain, isWide } as Table<C, D, I>
}

/** A row of a table, as rules have it. */
export type RowOf<T extends { columns: Columns }> = RowIn<T['columns']>
