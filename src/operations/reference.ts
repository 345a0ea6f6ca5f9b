import { REFUSALS } from '../core/refusal.ts'
import { inputSchema, type JsonSchema } from './json_schema.ts'
import type { Operation } from './operation.ts'
import { operations } from './registry.ts'

/** The registry as a page of Markdown: `docs/reference.md` is this, and a test keeps it so. */
export function reference(): string {
  const sections = operations.map(sectionOf)
  const codes = Object.entries(REFUSALS).map(([code, { exit, http }]) => {
    return `| \`${code}\` | ${exit} | ${http} |`
  })
  return `# Reference

Everything that can be asked, made from the registry (\`npm run reference\`). Over HTTP it is
\`POST /v1/NAME\` with a JSON object, reads also by GET; in the SDK \`client.NOUN.VERB(input)\`.

## Refusals

| code | exit | HTTP |
|---|---|---|
${codes.join('\n')}

${sections.join('\n')}`
}

function sectionOf(operation: Operation): string {
  const { name, effect, role, doc, refuses, command, tool } = operation
  const { properties, required = [] } = inputSchema(operation.input) as {
    properties: Record<string, JsonSchema>
    required?: string[]
  }
  const doors = [
    command && `CLI \`leasehold ${command}\``,
    tool && `MCP \`${tool}\``,
    `role ${role}`,
    effect,
  ]
  const rows = Object.entries(properties).map(([field, schema]) => {
    const must = required.includes(field) ? ' (required)' : ''
    return `| \`${field}\`${must} | ${typeOf(schema)} | ${String(schema['description'])} |`
  })
  const fields =
    rows.length > 0 ? `\n| field | type | meaning |\n|---|---|---|\n${rows.join('\n')}\n` : ''
  const refusals = refuses.length > 0 ? `\nMay refuse: ${refuses.join(', ')}.\n` : ''
  return `## ${name}

${doc}

${doors.filter(Boolean).join(' · ')}
${fields}${refusals}`
}

function typeOf(schema: JsonSchema): string {
  const { type, anyOf, minimum, maximum, items } = schema as {
    type?: string
    anyOf?: JsonSchema[]
    minimum?: number
    maximum?: number
    items?: JsonSchema
  }
  if (anyOf) return anyOf.map(typeOf).join(' or ')
  if (type === 'array') return `list of ${items ? typeOf(items) : 'values'}`
  const bounded = minimum !== undefined && maximum !== undefined && maximum < 2 ** 40
  return `${type ?? 'any'}${bounded ? ` ${minimum}–${maximum}` : ''}`
}
