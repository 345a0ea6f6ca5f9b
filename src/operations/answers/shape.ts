import * as z from 'zod/mini'

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
