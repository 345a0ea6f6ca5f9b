import { attempt } from '../../../core/attempt.ts'

/** A note as Markdown with front matter. The content follows as it is, whatever it says. */
export interface Note {
  scope: string
  key: string
  version: number
  author: string
  confidence: number | null
  tags: string[]
  updated: string
  expires: string | null
  content: string
}

/** What a file says: all of the front matter may be missing, and none of it is trusted. */
export interface Said {
  scope?: string
  key?: string
  version?: number
  confidence?: number
  tags?: string[]
  expires?: string
  content: string
}

const BEGIN = /^---\r?\n/
const END = /(?:^|\r?\n)---[ \t]*\r?(?:\n|$)/
const FRONT_MAX = 64 * 1024

/** Text that any reader of YAML takes for the same text. To some these two end a line. */
const quoted = (text: string) =>
  /^[A-Za-z][\w./:-]*$/.test(text)
    ? text
    : JSON.stringify(text)
        .replaceAll('\u2028', String.raw`\u2028`)
        .replaceAll('\u2029', '\\u2029')

export function render(note: Note): string {
  const lines = [
    `scope: ${quoted(note.scope)}`,
    `key: ${quoted(note.key)}`,
    `version: ${note.version}`,
    `author: ${quoted(note.author)}`,
    ...(note.confidence === null ? [] : [`confidence: ${note.confidence}`]),
    ...(note.tags.length === 0 ? [] : [`tags: [${note.tags.map(quoted).join(', ')}]`]),
    `updated: ${note.updated}`,
    ...(note.expires === null ? [] : [`expires: ${note.expires}`]),
  ]
  // Editors end a last line: a content that does not is told from one that does by `end`.
  const isOpen = !note.content.endsWith('\n')
  const end = isOpen ? ['end: open'] : []
  return ['---', ...lines, ...end, '---', `${note.content}${isOpen ? '\n' : ''}`].join('\n')
}

/**
 * What a file says; or a sentence where its front matter is ours and somebody broke it. Taken for
 * content it would become part of the note, and what it says of the note would be forgotten.
 */
export function parse(text: string): Said | string {
  const whole = text.replace(/^\uFEFF/, '')
  const begin = BEGIN.exec(whole)
  if (!begin) return { content: text }
  const rest = whole.slice(begin[0].length)
  const end = END.exec(rest.slice(0, FRONT_MAX))
  const front = rest.slice(0, end?.index ?? FRONT_MAX)
  // Somebody else's front matter is part of the content: it would be lost otherwise.
  const broken = (why: string) =>
    isOurs(front)
      ? `its front matter is broken (${why}): mend it, or take all of it away`
      : { content: text }
  if (!end) return broken('no line --- ends it')
  const fields = fieldsIn(front)
  if (typeof fields === 'string') return broken(fields)
  const content = rest.slice(end.index + end[0].length)
  // Without the line of tags, the note has no tags.
  return { tags: [], ...read(fields), content: closed(content, fields.get('end') === 'open') }
}

/** As every file of ours begins. */
const isOurs = (front: string) => /^scope:[^\n]*\n+key:/.test(front)

const KNOWN = new Set([
  ...['scope', 'key', 'version', 'author', 'confidence', 'tags', 'updated', 'expires', 'end'],
])

/** A sentence where a line is not one of ours. */
function fieldsIn(front: string): Map<string, string> | string {
  const fields = new Map<string, string>()
  let last = ''
  for (const line of front.split(/\r?\n/)) {
    const [, name = '', value = ''] = /^(\w+):[ \t]*([^]*?)[ \t]*$/.exec(line) ?? []
    // Other programs write a list as lines of its own.
    const item = last === 'tags' ? /^[ \t]*-[ \t]+(.+?)[ \t]*$/.exec(line)?.[1] : undefined
    if (item !== undefined) fields.set('tags', [fields.get('tags'), item].filter(Boolean).join())
    else if (KNOWN.has(name)) fields.set((last = name), value)
    else if (line.trim() !== '') return `what is ${JSON.stringify(line.slice(0, 40))}?`
  }
  return fields
}

const closed = (content: string, isOpen: boolean) =>
  isOpen ? content.replace(/\r?\n$/, '') : content

function read(fields: Map<string, string>): Omit<Said, 'content'> {
  const said: Omit<Said, 'content'> = {}
  for (const name of ['scope', 'key', 'expires'] as const) {
    const value = textIn(fields.get(name))
    if (value) said[name] = value
  }
  const version = Number(fields.get('version') || Number.NaN)
  if (Number.isSafeInteger(version) && version > 0) said.version = version
  const confidence = Number(fields.get('confidence') || Number.NaN)
  if (confidence >= 0 && confidence <= 1) said.confidence = confidence
  const tags = fields.get('tags')
  if (tags !== undefined) said.tags = itemsIn(tags.replace(/^\[(.*)\]$/, '$1'))
  return said
}

function textIn(value: string | undefined): string | undefined {
  if (!value?.startsWith('"')) return value?.replace(/^'(.*)'$/, '$1')
  return attempt(() => String(JSON.parse(value)), undefined)
}

/** `a, "b, c"` → two tags. */
function itemsIn(list: string): string[] {
  const items = list.match(/\s*(?:"(?:[^"\\]|\\.)*"|[^,\s][^,]*)/g) ?? []
  return items.flatMap((item) => textIn(item.trim()) || [])
}
