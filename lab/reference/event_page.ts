import { readFileSync } from 'node:fs'
import { RETENTION } from '../../src/core/retention.ts'
import { RUN_STATUSES, STATUSES } from '../../src/core/rows.ts'

const SOURCE = new URL('../../src/core/event.ts', import.meta.url)

interface Member {
  name: string
  isOptional: boolean
  type: string
  doc: string
}

/** Types that are declared elsewhere, spelled out. */
const ELSEWHERE: Record<string, readonly string[]> = {
  Retained: Object.keys(RETENTION),
  RunStatus: RUN_STATUSES,
  Status: STATUSES,
}

/** The types of events as a page of Markdown: `docs/events.md` is this, and a test keeps it so. */
export function eventPage(source = readFileSync(SOURCE, 'utf8')): string {
  const types = membersOf(bodyOf(source, 'EventData'))
  return `# Events

Every change leaves an event: what happened, in the past tense. This page is made from
\`src/core/event.ts\` (\`npm run reference\`). Read events with \`leasehold event list\`, follow
them over HTTP at \`/v1/events\` (server-sent events, resumable by id), or with the SDK:

\`\`\`ts
for await (const { event } of client.events()) {
  if (event?.type === 'task.moved') console.log(event.task, event.data.to)    // \`data\` is typed
}
\`\`\`

Every event has these fields; \`data\` depends on its type, and is listed below. A field named
\`name?\` may be missing.

| field | type | meaning |
|---|---|---|
| \`position\` | number | Rises by one with every event of a store, without gaps. |
| \`at\` | string | When: ISO 8601, UTC. |
| \`type\` | string | One of the types below. |
| \`agent\` | string | Who did it; \`leasehold\` where nobody asked for it. |
| \`lock\` | string or null | The lock it is about. |
| \`task\` | string or null | The task it is about. |
| \`data\` | object | See below. |

${types.map((type) => sectionOf(source, type)).join('\n')}`
}

function sectionOf(source: string, { name, type, doc }: Member): string {
  if (!doc) throw new Error(`${name} has no sentence in src/core/event.ts`)
  const fields = fieldsOf(source, type).map((field) => {
    const said = field.doc && `. ${field.doc}`
    return `- \`${field.name}${field.isOptional ? '?' : ''}\`: ${inWords(field.type)}${said}\n`
  })
  return `## ${name}\n\n${doc}\n\n${fields.join('')}`
}

/** The fields that a type has, those of its parts included. */
function fieldsOf(source: string, type: string): Member[] {
  const parts = splitAt(type, '&')
  if (parts.length > 1) return parts.flatMap((part) => fieldsOf(source, part))
  if (type.startsWith('{')) return membersOf(type.slice(1, -1))
  const [, outer, inner] = /^(\w+)<(.*)>$/s.exec(type) ?? []
  if (outer === 'Partial') {
    const all = fieldsOf(source, inner!)
    return all.map((field) => ({
      name: field.name,
      isOptional: true,
      type: field.type,
      doc: field.doc,
    }))
  }
  if (outer === 'Record') {
    const [keys, value] = splitAt(inner!, ',') as [string, string]
    const names = splitAt(keys, '|').flatMap((key) => ELSEWHERE[key] ?? [key.replaceAll("'", '')])
    return names.map((name) => ({ name, isOptional: false, type: value, doc: '' }))
  }
  const [, above] = new RegExp(String.raw`interface ${type} extends (\w+)`).exec(source) ?? []
  const own = membersOf(bodyOf(source, type))
  return above === undefined ? own : [...own, ...fieldsOf(source, above)]
}

function bodyOf(source: string, name: string): string {
  const found = new RegExp(String.raw`interface ${name}\b[^{]*\{\n(.*?)\n\}\n`, 's').exec(source)
  if (!found) throw new Error(`src/core/event.ts declares no interface ${name}`)
  return found[1]!
}

const MEMBER = /^(?:\/\*\*(.*?)\*\/\s*)?'?([\w.]+)'?(\?)?:\s*(.*)$/s

/** The members of an interface. A comment also speaks for the optional fields that follow it. */
function membersOf(body: string): Member[] {
  let last = ''
  return splitAt(body.replaceAll(/\*\/\s*\n/g, '*/ '), ';\n').map((member) => {
    const [, said, name, optional, type] = MEMBER.exec(member) ?? []
    if (name === undefined) throw new Error(`Cannot read this member of an event: ${member}`)
    const isOptional = optional !== undefined
    const doc = said?.replaceAll(/\s*\n\s*\* ?/g, ' ').trim() ?? (isOptional ? last : '')
    last = isOptional ? doc : ''
    return { name, isOptional, type: type!.trim(), doc }
  })
}

/** Cuts a text at any of `marks`, except inside of brackets and comments. */
function splitAt(text: string, marks: string): string[] {
  const parts = ['']
  let depth = 0
  for (const piece of text.match(/\/\*.*?\*\/|[^]/gs) ?? []) {
    if ('{[(<'.includes(piece)) depth += 1
    if ('}])>'.includes(piece)) depth -= 1
    if (depth === 0 && marks.includes(piece)) parts.push('')
    else parts[parts.length - 1] += piece
  }
  return parts.map((part) => part.trim()).filter(Boolean)
}

/** A type in the words of the reference: `list of string`, `string or null`. */
function inWords(type: string): string {
  const choices = splitAt(type, '|').filter((each) => each !== 'undefined')
  if (choices.length > 1) return choices.map(inWords).join(' or ')
  const only = choices[0]!
  if (only.endsWith('[]')) return `list of ${inWords(only.slice(0, -2))}`
  if (only.startsWith('{')) {
    const fields = membersOf(only.slice(1, -1)).map((field) => {
      return `${field.name}${field.isOptional ? '?' : ''}: ${inWords(field.type)}`
    })
    return `{ ${fields.join(', ')} }`
  }
  return ELSEWHERE[only]?.map((word) => `"${word}"`).join(' or ') ?? only
}
