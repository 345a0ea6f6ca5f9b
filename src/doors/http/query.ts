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
    const schema = operation.input[name]?.schema()
    input[name] = !schema || schema.safeParse(text).success ? text : jsonOr(text)
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
