import { inputSchema, type JsonSchema } from '../operations/json_schema.ts'
import type { Operation } from '../operations/operation.ts'
import { operations } from '../operations/registry.ts'

/** Enough for what most operations take, lists and metadata included. */
export const BODY_MAX = 1024 * 1024
const REST_MAX = 64 * 1024
/** A character may be written as `\u0007`. */
const ESCAPED = 6

const known = new WeakMap<Operation, number>()

/** How many bytes of JSON an operation takes: its longest text fits, however it is escaped. */
export function bodyMaxOf(operation: Operation): number {
  let max = known.get(operation)
  if (max === undefined) {
    const { properties } = inputSchema(operation.input) as { properties: JsonSchema }
    const lengths = Object.values(properties).map(
      (each) => (each as { maxLength?: number }).maxLength,
    )
    max = Math.max(BODY_MAX, REST_MAX + ESCAPED * Math.max(...lengths.map((each) => each ?? 0), 0))
    known.set(operation, max)
  }
  return max
}

/** Which tool is called stands in the body, so every call may be as long as the longest. */
export const toolBodyMax = () => Math.max(...operations.filter(({ tool }) => tool).map(bodyMaxOf))
