import { REFUSALS } from '../core/refusal.ts'
import { answerSchemas, inputSchema, type JsonSchema } from './json_schema.ts'
import type { Operation } from './operation.ts'
import { described } from './registry.ts'

/** What a reader is told of one operation, whether the page is Markdown or HTML. */
export interface Section {
  name: string
  doc: string
  /** How it is reached, by whom, and whether it changes something. */
  doors: string[]
  fields: { name: string; isRequired: boolean; type: string; meaning: string }[]
  refuses: readonly string[]
  answer: string
}

export function sections(): Section[] {
  const { of } = answerSchemas(described)
  return described.map((each) => sectionOf(each, typeOf(of(each))))
}

function sectionOf(operation: Operation, answer: string): Section {
  const { name, doc, effect, role, refuses, command, tool } = operation
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
  const fields = Object.entries(properties).map(([field, schema]) => {
    const meaning = String(schema['description'])
    return { name: field, isRequired: required.includes(field), type: typeOf(schema), meaning }
  })
  return { name, doc, doors: doors.filter((door) => door !== undefined), fields, refuses, answer }
}

/** The registry as a page of Markdown: `docs/reference.md` is this, and a test keeps it so. */
export function reference(): string {
  const codes = Object.entries(REFUSALS).map(([code, { exit, http }]) => {
    return `| \`${code}\` | ${exit} | ${http} |`
  })
  const shapes = Object.entries(answerSchemas(described).named).map(([name, schema]) => {
    const { description, ...shape } = schema as { description: string }
    return `- **${name}**: ${description} \`${typeOf(shape)}\``
  })
  return `# Reference

Everything that can be asked, made from the registry (\`npm run reference\`). Over HTTP it is
\`POST /v1/NAME\` with a JSON object, reads also by GET; in the SDK \`client.NOUN.VERB(input)\`.
Tools may leave fields of an answer out, to be short.

## Refusals

| code | exit | HTTP |
|---|---|---|
${codes.join('\n')}

A claim that finds nothing ready is answered (200), and the command line exits with 6.
\`reserve check\` exits with 5 if a path is held.

## Answers

Shapes that answers are made of; \`name?\` may be missing.

${shapes.join('\n')}

${sections().map(markdownOf).join('\n')}`
}

function markdownOf({ name, doc, doors, fields, refuses, answer }: Section): string {
  const rows = fields.map(({ name: field, isRequired, type, meaning }) => {
    return `| \`${field}\`${isRequired ? ' (required)' : ''} | ${type} | ${meaning} |`
  })
  const table =
    rows.length > 0 ? `\n| field | type | meaning |\n|---|---|---|\n${rows.join('\n')}\n` : ''
  const refusals = refuses.length > 0 ? `\nMay refuse: ${refuses.join(', ')}.\n` : ''
  return `## ${name}

${doc}

${doors.join(' · ')}
${table}
Answer: \`${answer}\`
${refusals}`
}

/** A schema in words: `list of Lease`, `{ name: string, pid?: integer }`. */
function typeOf(schema: JsonSchema): string {
  const {
    type,
    anyOf,
    items,
    properties,
    $ref,
    enum: words,
  } = schema as {
    type?: string | string[]
    anyOf?: JsonSchema[]
    items?: JsonSchema
    properties?: Record<string, JsonSchema>
    $ref?: string
    enum?: string[]
  }
  if ($ref !== undefined) return $ref.split('/').at(-1)!
  if (words) return words.map((word) => `"${word}"`).join(' or ')
  if (anyOf) return anyOf.map(typeOf).join(' or ')
  if (type === 'array') return `list of ${items ? typeOf(items) : 'values'}`
  if (properties) return objectOf(properties, (schema['required'] ?? []) as string[])
  return `${[type ?? 'any'].flat().join(' or ')}${boundsOf(schema)}`
}

function objectOf(properties: Record<string, JsonSchema>, required: string[]): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    return `${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`
  })
  return `{ ${fields.join(', ')} }`
}

function boundsOf(schema: JsonSchema): string {
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
  const bounded = minimum !== undefined && maximum !== undefined && maximum < 2 ** 40
  return bounded ? ` ${minimum}–${maximum}` : ''
}
