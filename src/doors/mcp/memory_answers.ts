import type { ByAnswer } from '../../operations/registry.ts'

type Shape = Record<string, unknown>

const withoutEmpty = (of: object, drops: string[] = []): Shape =>
  Object.fromEntries(
    Object.entries(of).filter(([name, value]) => {
      const isEmpty = value === null || value === false || (Array.isArray(value) && !value.length)
      return !isEmpty && !drops.includes(name)
    }),
  )

const SEARCH_SHORT: ByAnswer<Shape> = {
  'memory.search': ({ items, ...rest }) => ({
    items: items.map((item) => withoutEmpty(item, ['score'])),
    ...rest,
  }),
  'memory.context': ({ items, ...rest }) => ({
    items: items.map((item) => withoutEmpty(item)),
    ...rest,
  }),
  'duplicate.list': ({ items, next }) => ({
    items: items.map((item) => withoutEmpty(item, ['status'])),
    next,
  }),
}

/** What is shown of a version; its hash and its place in the history are for programs. */
const VERSION = ['version', 'author', 'created_at', 'confidence', 'tags', 'content', 'kind']
const NOTE = ['scope', 'key', ...VERSION, 'expires_at', 'task_id', 'conflicts']
const DISAGREEMENT = ['id', 'status', 'strategy', 'why', 'ours', 'theirs', 'base']
const CONFLICT = ['id', 'scope', 'key', 'ours', 'theirs', 'status', 'opened_by', 'opened_at']

const some = (fields: string[], of: object): Shape =>
  Object.fromEntries(
    Object.entries(of).filter(([name, value]) => fields.includes(name) && !isEmpty(value)),
  )

const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0)

/** What each answer is as data, without what says nothing. */
export const MEMORY_SHORT: ByAnswer<Shape> = {
  ...SEARCH_SHORT,
  'memory.put': ({ conflict, ...put }) =>
    conflict
      ? {
          ...put,
          conflict: { ...some(DISAGREEMENT, conflict), with: some(VERSION, conflict.with) },
        }
      : put,
  'memory.get': (note) => ({
    ...some(NOTE, note),
    ...(note.siblings.length > 0 && { siblings: note.siblings.map((each) => some(VERSION, each)) }),
  }),
  'conflict.list': ({ items, next }) => ({
    items: items.map((item) => ({
      ...some([...CONFLICT, 'why', 'draft', 'base_content'], item),
      ...(item.sides && {
        sides: { ours: some(VERSION, item.sides.ours), theirs: some(VERSION, item.sides.theirs) },
      }),
    })),
    next,
  }),
}
