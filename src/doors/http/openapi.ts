import { type RefusalCode, REFUSALS } from '../../core/refusal.ts'
import { answerSchemas, inputSchema, type JsonSchema } from '../../operations/json_schema.ts'
import type { Operation } from '../../operations/operation.ts'
import { type Section, sections } from '../../operations/reference.ts'
import { described } from '../../operations/registry.ts'

const ALWAYS: readonly RefusalCode[] = ['invalid', 'unauthorized', 'forbidden', 'unavailable']

/** The registry as OpenAPI 3.1. */
export function openApi(version: string): object {
  const { named, of } = answerSchemas(described)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      version,
      description: 'Locks with fences, and tasks, for many agents at once.',
    },
    security: [{ token: [] }],
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Refusal: refusalSchema, ...named },
    },
    paths: Object.fromEntries(
      described.map((each) => [`/v1/${each.name}`, pathOf(each, of(each))]),
    ),
  }
}

function pathOf(operation: Operation, answer: JsonSchema): object {
  const about = {
    operationId: operation.name,
    summary: operation.doc,
    tags: [operation.name.split('.')[0]],
    'x-role': operation.role,
    responses: responsesOf(operation, answer),
  }
  const schema = inputSchema(operation.input)
  const post = { ...about, requestBody: { content: { 'application/json': { schema } } } }
  if (operation.effect === 'write') return { post }
  const properties = schema['properties'] as Record<string, object>
  const required = (schema['required'] ?? []) as string[]
  const parameters = Object.entries(properties).map(([name, each]) => {
    return { name, in: 'query', required: required.includes(name), schema: each }
  })
  return { post, get: { ...about, operationId: `${operation.name}.get`, parameters } }
}

function responsesOf(operation: Operation, answer: JsonSchema): object {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } }
  const responses: Record<string, object> = {
    200: { description: 'Done.', content: { 'application/json': { schema: answer } } },
  }
  for (const code of [...ALWAYS, ...operation.refuses]) {
    const { http } = REFUSALS[code]
    const said = responses[http] as { description: string } | undefined
    const codes = new Set([...(said?.description.split(', ') ?? []), code])
    responses[http] = { description: [...codes].join(', '), content }
  }
  return responses
}

const refusalSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'next', 'details'],
      properties: {
        code: { enum: Object.keys(REFUSALS) },
        message: { type: 'string' },
        next: { type: 'string' },
        details: { type: 'object' },
        actions: {
          type: 'array',
          items: {
            type: 'object',
            required: ['says'],
            properties: {
              says: { type: 'string' },
              operation: { type: 'string' },
              input: { type: 'object' },
            },
          },
        },
      },
    },
  },
}

/** The registry as a page for people: what can be asked, with what, and what may be refused. */
export function referencePage(version: string): string {
  const all = sections().map(sectionOf).join('\n')
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Leasehold reference</title>
<style>${STYLE}</style><h1>Leasehold ${escape(version)}</h1>
<p>POST /v1/NAME with a JSON object; reads also by GET. Send "Authorization: Bearer TOKEN".</p>
${all}</html>`
}

function sectionOf({ name, doc, doors, fields, refuses, answer }: Section): string {
  const rows = fields.map(({ name: field, isRequired, type, meaning }) => {
    const must = isRequired ? ' <b>required</b>' : ''
    return `<tr><td><code>${escape(field)}</code>${must}<td>${escape(type)}<td>${escape(meaning)}`
  })
  return `<h2 id="${name}">${name}</h2><p>${escape(doc)}
<small>${escape(doors.join(', '))}; may refuse: ${refuses.join(', ') || 'nothing special'}</small>
<table>${rows.join('')}</table><p>Answer: <code>${escape(answer)}</code>`
}

const STYLE = `:root{color-scheme:light dark}body{font:15px/1.5 system-ui;max-width:60rem;
margin:2rem auto;padding:0 1rem}td{padding:.2rem 1rem .2rem 0;vertical-align:top}
h2{margin-top:2rem;border-top:1px solid #8884;padding-top:1rem}small{opacity:.7;display:block}`

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
