import type { Operation } from '../../operations/operation.ts'

/**
 * The input of a read from a query string, where everything is text. A value is taken as text if
 * the field takes text, else as the JSON it spells: `limit=5`, `ready=true`.
 */
export function inputFromQuery(
  query: Record<string, string>,
  operation: Operation,
): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(query)) {
    // Only what the operation declares: every object also has a `constructor`.
    const schema = Object.hasOwn(operation.input, name) ? operation.input[name]!.schema() : null
    const value = !schema || schema.safeParse(text).success ? text : jsonOr(text)
    Object.defineProperty(input, name, { value, enumerable: true })
  }
  return input
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
