import * as z from 'zod/mini'
import type { Column, Kind } from '../../core/schema/table.ts'

/** Shapes that have a name of their own in OpenAPI and in the reference, with what they are. */
export const shapes = new Map<string, { schema: () => z.ZodMiniType; doc: string }>()

/**
 * The shape of answers, or of parts of them. Built on first use, which is by OpenAPI, the reference
 * and tests only; and built once, so that every use is the same shape.
 */
export function shape<S extends Shape>(name: string, doc: string, make: () => S): () => Made<S> {
  const schema = unnamed(make)
  shapes.set(name, { schema, doc })
  return schema
}

/** A schema, or the fields of an object, which has no others. */
type Shape = z.ZodMiniType | Record<string, z.ZodMiniType>
type Made<S> = S extends z.ZodMiniType
  ? S
  : S extends Record<string, z.ZodMiniType>
    ? ReturnType<typeof z.strictObject<S>>
    : never

export function unnamed<S extends Shape>(make: () => S): () => Made<S> {
  let made: Made<S> | undefined
  return () => (made ??= schemaOf(make()))
}

const schemaOf = <S extends Shape>(of: S) =>
  (of instanceof z.ZodMiniType ? of : z.strictObject(of as never)) as Made<S>

/** What an answer of this shape is. */
export type AnswerAs<S extends () => z.ZodMiniType> = z.output<ReturnType<S>>

export const text = () => z.string()
export const count = () => z.int().check(z.gte(0))
export const seconds = () => z.number()
export const yes = () => z.boolean()
export const strings = () => z.array(z.string())
export const list = <S extends Shape>(item: S) => z.array(schemaOf(item))
export const orNull = <S extends z.ZodMiniType>(schema: S) => z.nullable(schema)
/** Left out where it is not known. */
export const maybe = <S extends z.ZodMiniType>(schema: S) => z.exactOptional(schema)
export const details = () => z.record(z.string(), z.unknown())
export const counts = () => z.record(z.string(), z.number())

export const time = shape('Time', 'ISO 8601, UTC.', () => z.iso.datetime())

/** One page of many; `next` is where to go on, null at the end. */
export const page = <S extends Shape>(item: () => S) =>
  unnamed(() => ({ items: list(item()), next: orNull(text()) }))

/** All of them. */
export const all = <S extends Shape>(item: () => S) =>
  unnamed(() => ({ items: list(item()), next: z.null() }))

type Columns = Readonly<Record<string, Column<unknown>>>
type ValueOf<C extends Columns, Name extends keyof C> = C[Name]['value']
/** What the kind of a column tells. */
type Plain<Value> = string extends Value
  ? true
  : number extends Value
    ? true
    : boolean extends Value
      ? true
      : Value extends string[]
        ? true
        : false
/** Of which words a text is one, and what JSON holds, has to be said. */
type ToSay<C extends Columns> = {
  [
    Name in keyof C as Plain<Exclude<ValueOf<C, Name>, null>> extends true ? never : Name
  ]: z.ZodMiniType<ValueOf<C, Name>>
}

/** The columns of a table as an answer has them: those whose kind does not say all as in `said`. */
export function columnsOf<
  C extends Columns,
  Gone extends keyof C & string,
  Said extends Omit<ToSay<C>, Gone>,
>({ columns }: { columns: C }, gone: readonly Gone[], said: Said) {
  const left = Object.entries(columns).filter(([name]) => !gone.includes(name as Gone))
  const cells = left.map(([name, column]) => [name, said[name as keyof Said] ?? cell(name, column)])
  return Object.fromEntries(cells) as {
    [Name in Exclude<keyof C, Gone>]: Name extends keyof Said
      ? Said[Name]
      : z.ZodMiniType<ValueOf<C, Name>>
  }
}

/** What the kind of a column says; JSON without a word beside it is a list of words. */
const BY_KIND: Partial<Record<Kind, () => z.ZodMiniType>> = {
  int: count,
  real: () => z.number(),
  bool: yes,
  json: strings,
}

function cell(name: string, { kind, flags }: Column<unknown>): z.ZodMiniType {
  const made = (BY_KIND[kind] ?? (name.endsWith('_at') ? time : text))()
  return flags.isNullable ? orNull(made) : made
}
