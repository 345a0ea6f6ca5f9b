import * as z from 'zod/mini'
import type { Fields } from './operation.ts'

export type JsonSchema = Record<string, unknown>

/** An operation's input as JSON Schema, each field with its doc: for OpenAPI and for MCP. */
export function inputSchema(fields: Fields): JsonSchema {
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  for (const [name, field] of Object.entries(fields)) {
    const schema = field.schema()
    const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
    properties[name] = { ...json, description: field.doc }
    if (!schema.safeParse(undefined).success) required.push(name)
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}
