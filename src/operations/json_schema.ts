import * as z from 'zod/mini'
import { shapes } from './answers/shape.ts'
import type { Fields, Operation } from './operation.ts'

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

const AT = '#/components/schemas/'

/**
 * The answers of operations as JSON Schema. Shapes that have a name are in `named`, and
 * referred to as components of OpenAPI. Later versions may answer with more fields: nobody is told
 * to refuse them.
 */
export function answerSchemas(operations: readonly Operation[]): {
  named: Record<string, JsonSchema>
  of: (operation: Operation) => JsonSchema
} {
  const registry = z.registry<{ id: string }>()
  const ids = new Map<z.ZodMiniType, string>()
  const add = (schema: z.ZodMiniType, id: string) => {
    if (ids.has(schema)) return
    ids.set(schema, id)
    registry.add(schema, { id })
  }
  // By name: they were declared in the order in which modules happened to be loaded.
  const byName = [...shapes].toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, { schema }] of byName) add(schema(), name)
  for (const { name, output } of operations) add(output(), name)
  const { schemas } = z.toJSONSchema(registry, { uri: (id) => AT + id, override: relax })
  const named: Record<string, JsonSchema> = {}
  for (const [name, { doc }] of byName) named[name] = { description: doc, ...bare(schemas[name]!) }
  return {
    named,
    of: ({ output }) => {
      const id = ids.get(output())!
      return shapes.has(id) ? { $ref: AT + id } : bare(schemas[id]!)
    },
  }
}

function bare({ $schema: _, $id: _id, id: _name, ...schema }: JsonSchema): JsonSchema {
  return schema
}

function relax({ jsonSchema: schema }: { jsonSchema: JsonSchema }): void {
  if (schema['additionalProperties'] === false) delete schema['additionalProperties']
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum']
  // Said already by the format, and by what an object is.
  if (schema['format'] === 'date-time') delete schema['pattern']
  delete schema['propertyNames']
}
