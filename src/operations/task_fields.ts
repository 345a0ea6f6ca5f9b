import { minLength, type output, type ZodMiniOptional, type ZodMiniType } from 'zod/mini'
import { PRIORITY_DEFAULT } from '../core/bounds.ts'
import type { Touched } from '../core/touched.ts'
import { type Field, field } from './operation.ts'
import * as s from './schemas.ts'

const TITLE_MAX = 500
const BODY_MAX = 256 * 1024

/** What a task says, as a person or agent may state it. */
const said = {
  title: field(() => s.plain(TITLE_MAX), 'What the task is, in one line.'),
  body: field(
    () => s.text(BODY_MAX),
    'The prompt, or everything the agent needs to know. "-" reads standard input.',
  ),
  project: field(s.nameOrNone, 'The codebase that the task belongs to.'),
  user: field(s.nameOrNone, 'The person the task runs for.'),
  priority: field(s.level, 'How urgent, 0–9 (default 5; 7 and up: high).'),
  group: field(s.nameOrNone, 'Once a task of a group has started, its others come next.'),
  labels: field(s.words, 'A label to find the task by (repeatable).', '--label <label...>'),
  depends_on: field(s.ids, 'A task that must be done first (repeatable).', '--depends-on <id...>'),
  assigned_to: field(s.nameOrNone, 'Only this agent may claim the task.'),
  metadata: field(s.object, 'Anything else, as a JSON object.'),
  touches: field(
    s.touches,
    'A path or glob that the task will change: src/** (repeatable).',
    '--touches <glob...>',
  ),
}

const filled = <S extends ZodMiniType>(of: Field<S>, value: output<S>) => ({
  ...of,
  schema: () => s.or(of.schema(), value),
})

/** Not filled in: a request that an older program remembers has no such field. */
const touches = { ...said.touches, schema: () => s.optional(s.touches()) }

/** Creating fills in what is left out. */
export const newTask = {
  title: said.title,
  body: filled(said.body, ''),
  project: filled(said.project, null),
  user: filled(said.user, null),
  priority: filled(said.priority, PRIORITY_DEFAULT),
  group: filled(said.group, null),
  labels: filled(said.labels, []),
  depends_on: filled(said.depends_on, []),
  assigned_to: filled(said.assigned_to, null),
  metadata: filled(said.metadata, {}),
  touches,
}

/** The prompt of an enqueued task is its body, and may be longer than one that agents claim. */
const PROMPT_MAX = 2 * 1024 * 1024

/** What an enqueued task says: the prompt, for whom, and how it is to be run. */
export const newQueued = {
  prompt: field(
    () => s.text(PROMPT_MAX).check(minLength(1, 'must not be empty')),
    'What the agent should do. "-" reads standard input.',
  ),
  project: field(s.name, 'The project whose agent is started.'),
  user: field(s.name, 'The person the task runs for: their tasks run one at a time.'),
  id: field(s.someId, 'An id of your own (default: the next number).'),
  title: field(
    () => s.optional(said.title.schema()),
    'A title of one line (default: the first line of the prompt).',
  ),
  priority: filled(said.priority, PRIORITY_DEFAULT),
  group: filled(said.group, null),
  labels: filled(said.labels, []),
  depends_on: filled(said.depends_on, []),
  metadata: filled(said.metadata, {}),
  touches,
  agent_command: field(
    () => s.optional(s.plain(100)),
    "Name of an agent in config.json (default: the project's agent).",
  ),
  time_limit_seconds: field(
    () => s.optional(s.seconds(1, 7 * 86_400)),
    'Stop the run if it takes longer than this.',
  ),
  retries: field(
    () => s.or(s.whole(0, 100), 0),
    'How many times to retry after a failure (default 0).',
  ),
}

/** Marks that some agents put on a task they create; they are kept in its metadata. */
export const marks = {
  ra_mode: field(() => s.optional(s.plain(100)), 'Kept in metadata as ra_mode.'),
  ra_score: field(() => s.optional(s.number()), 'Kept in metadata as ra_score.'),
}

/** In an edit, what is left out stays as it is. */
export const editedTask = Object.fromEntries(
  Object.entries(said).map(([name, of]) => {
    return [name, { ...of, schema: () => s.optional<ZodMiniType>(of.schema()) }]
  }),
) as unknown as {
  [K in keyof typeof said]: Field<ZodMiniOptional<ReturnType<(typeof said)[K]['schema']>>>
}

interface Placed {
  user?: string | null | undefined
  project?: string | null | undefined
  depends_on?: string[] | undefined
}

/** What a new or edited task touches beside itself: its user, its project, what it waits for. */
export function placeOfTask({ user, project, depends_on = [] }: Placed): Touched[] {
  return [
    ...(user === undefined ? [] : [{ user }]),
    ...(project === undefined ? [] : [{ project }]),
    ...depends_on.map((task) => ({ task, changes: false })),
  ]
}

/** An id of the caller's own choice, where it made one. */
export const chosen = (id: string | undefined): Touched[] =>
  id === undefined ? [] : [{ chosen_id: id }]
