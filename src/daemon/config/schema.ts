import * as z from 'zod/mini'
import { STRATEGIES } from '../../core/schema/memory.ts'
import { hintOf } from '../../core/hint.ts'
import { RESERVATION_TTL_MS } from '../../core/bounds.ts'
import { DAYS_MAX, RETENTION, ROWS_MAX } from '../../core/retention.ts'
import { MODES } from '../../core/paths/touch.ts'
import * as s from '../../operations/schemas.ts'

export const SLOTS_MAX = 1000
const LIMIT_MAX = 100_000
const BUSY_MS_MAX = 3600_000
const RUN_SECONDS_MAX = 7 * 24 * 3600
const LOG_BYTES_MAX = 10 * 1024 ** 3

/** An issue does not say which keys there are, so the message for an unknown one lists them. */
const section = <S extends z.core.$ZodShape>(shape: S) =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : 'must be an object',
  })

/** A section that is left out is read as an empty one: each of its keys has its own default. */
const filled = <S extends z.core.$ZodShape>(shape: S) =>
  z.prefault(section(shape), {} as z.input<ReturnType<typeof section<S>>>)

const byName = <S extends z.ZodMiniType>(schema: S) =>
  s.or(z.record(s.plain(200), schema, 'must be an object'), {})

/** What counts for all who use the store has no default here: what is not named is left alone. */
const limit = () => s.optional(s.nullable(s.whole(0, LIMIT_MAX)))
const duration = () => s.optional(s.nullable(s.seconds(1, RUN_SECONDS_MAX)))

/** Bounded below too: shares are divided by it. */
const weight = () => s.numberIn(0.001, 1000)

const folder = () =>
  s.text(4096).check(
    z.minLength(1, 'must not be empty'),
    z.refine((value) => !/^~[^/]/.test(value), 'must be a full path: only ~/ is understood'),
  )

const command = () =>
  z.array(s.text(4096), 'must be a list: the program, then its arguments').check(
    z.minLength(1, 'must name a program'),
    z.maxLength(100, 'may have at most 100 entries'),
    z.refine((argv) => argv[0] !== '', 'must name a program'),
  )

const variable = () =>
  z.string().check(
    z.regex(/^[A-Za-z_]\w*$/, 'is no name of a variable'),
    z.refine((name) => !name.startsWith('LEASEHOLD_'), 'is set by Leasehold itself'),
  )

const given = (value: unknown) =>
  value === true || (typeof value === 'string' && !value.includes('\0'))

/** A list of names means: pass these of ours through. */
const env = () =>
  z.pipe(
    z.transform((value: unknown) =>
      Array.isArray(value) ? Object.fromEntries(value.map((name) => [String(name), true])) : value,
    ),
    z.record(
      variable(),
      z.custom<string | true>(given, 'must be text, or true to pass ours through'),
      'must be a list of names, or an object',
    ),
  )

/** Inside of the checkout, as a path from its top. */
const relativePath = () =>
  s.text(4096).check(
    z.minLength(1, 'must not be empty'),
    z.refine(
      (path) => !path.startsWith('/') && !path.split('/').includes('..'),
      'must be a path inside of the checkout',
    ),
  )

const KEPT_DAYS = 14
const SALVAGED_BYTES = 1024 ** 2

/** A worktree for every run; `true` is all defaults. */
const worktrees = () =>
  z.pipe(
    z.transform((value: unknown) => (value === true ? {} : value === false ? null : value)),
    s.nullable(
      section({
        base: s.or(s.nullable(s.plain(250)), null),
        folder: s.optional(folder()),
        copy: s.or(z.array(relativePath(), 'must be a list of paths'), []),
        setup: s.or(s.nullable(command()), null),
        teardown: s.or(s.nullable(command()), null),
        retry: s.or(z.enum(['same', 'new'], 'must be "same" or "new"'), 'same'),
        keep: filled({
          days: s.or(s.nullable(s.whole(0, DAYS_MAX)), KEPT_DAYS),
          bytes: s.or(s.nullable(s.whole(0, 2 ** 50)), null),
        }),
        salvage: filled({
          ignored: s.or(s.nullable(z.array(relativePath(), 'must be a list of globs')), null),
          bytes_max: s.or(s.whole(0, LOG_BYTES_MAX), SALVAGED_BYTES),
        }),
      }),
    ),
  )

const LENT_MAX = 10_000

/** What is lent: a list of values, or ports from one to another. */
const resource = () =>
  z.pipe(
    z.transform((value: unknown) => {
      const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(String(value)) ?? []
      const many = Number(to) - Number(from) + 1
      if (from === undefined || many < 1 || many > LENT_MAX) return value
      return Array.from({ length: many }, (_, i) => String(Number(from) + i))
    }),
    z
      .array(s.plain(200), 'must be a list of values, or a range such as "5100-5199"')
      .check(
        z.minLength(1, 'must have a value'),
        z.maxLength(LENT_MAX, `may have at most ${LENT_MAX} values`),
      ),
  )

const agent = () =>
  section({
    command: s.optional(command()),
    prompt: s.optional(
      z.enum(['stdin', 'file', 'argument'], 'must be "stdin", "file" or "argument"'),
    ),
    env: s.optional(env()),
    brief: s.optional(s.yesOrNo()),
    commit: s.optional(s.yesOrNo()),
    time_limit_seconds: duration(),
    silence_seconds: duration(),
  })

const address = () =>
  s
    .plain(2000)
    .check(z.refine((value) => /^https?:\/\/[^@]+$/.test(value), 'must be an http(s) address'))

/** Others are told this very address, so it must lead them here. */
const listening = () =>
  z.pipe(
    s.plain(300).check(
      z.regex(/^(\[[\da-f:.]+\]|[^\s:[\]]+):\d{1,5}$/i, 'must be HOST:PORT'),
      z.refine(
        (value) => !/^(0\.0\.0\.0|\[::\]):/.test(value),
        'must name one address of this host',
      ),
      z.refine((value) => Number(/\d+$/.exec(value)) < 65_536, 'must have a port up to 65535'),
    ),
    z.transform((value: string) => {
      const at = value.lastIndexOf(':')
      return {
        host: value.slice(0, at).replaceAll(/[[\]]/g, ''),
        port: Number(value.slice(at + 1)),
      }
    }),
  )

/** How notes become vectors. `local` is the model inside the package. */
const embeddings = () => ({
  provider: s.or(
    z.enum(['local', 'openai', 'off'], 'must be "local", "openai" or "off"'),
    'local' as const,
  ),
  url: s.optional(address()),
  model: s.optional(s.plain(200)),
  api_key_env: s.optional(variable()),
  duplicates_at: s.optional(s.numberIn(0, 1)),
})

const SCOPES = /^(?:default|\*|global|(?:project|user|task):.+)$/u

/** Which conflicts are merged how; a name may end in a star. */
const strategies = () =>
  s.or(
    z.record(
      s.plain(211).check(z.regex(SCOPES, 'is no scope: default, global, project:NAME, project:*')),
      z.enum(STRATEGIES, `must be one of ${STRATEGIES.join(', ')}`),
      'must be an object',
    ),
    {},
  )

/** A bound that is crossed for so long makes an alert; null: never. */
const bound = (seconds: number) => s.or(s.nullable(s.seconds(1, RUN_SECONDS_MAX)), seconds)

const webhook = () =>
  section({
    url: s
      .text(2048)
      .check(z.refine((value) => /^https?:\/\/[^\s/]/.test(value), 'must begin with https://')),
    secret_env: s.or(s.nullable(z.string().check(z.regex(/^\w+$/, 'must name a variable'))), null),
  })

const alerts = () =>
  filled({
    webhook: s.or(s.nullable(webhook()), null),
    command: s.or(s.nullable(command()), null),
    rules: filled({
      lock_expired: s.or(s.yesOrNo(), true),
      agent_lost: s.or(s.yesOrNo(), true),
      deadlock: s.or(s.yesOrNo(), true),
      wait_seconds: bound(300),
      queue_age_seconds: bound(3600),
      store_trouble_seconds: bound(10),
      recover_seconds: s.or(s.seconds(1, RUN_SECONDS_MAX), 300),
    }),
  })

/** What leaves by itself; null: never, or any number. Of `days` a kind may say other than all. */
const retention = () => {
  const days = s.optional(s.nullable(s.whole(0, DAYS_MAX)))
  const kind = s.optional(section({ days, max: s.optional(s.nullable(s.whole(0, ROWS_MAX))) }))
  const kinds = Object.fromEntries(Object.keys(RETENTION).map((each) => [each, kind]))
  return filled({ days, ...kinds })
}

/** How work becomes part of a branch: see src/daemon/lander. */
const landing = () =>
  section({
    onto: s.optional(s.branch()),
    method: s.or(z.enum(['rebase', 'merge'], 'must be "rebase" or "merge"'), 'rebase'),
    check: s.optional(command()),
    check_seconds: s.or(s.seconds(1, RUN_SECONDS_MAX), 1800),
    auto: s.or(s.yesOrNo(), false),
    remote: s.or(s.nullable(s.branch()), null),
    together: s.or(s.whole(1, 64), 4),
  }).check(z.refine(({ onto, check }) => onto !== undefined || check !== undefined, NEEDS_ONE))

const NEEDS_ONE = 'needs onto (a branch), check (a command), or both'

const isBranchless = (value: unknown): value is object => {
  const { land, worktrees: said } = Object(value) as { land?: unknown; worktrees?: unknown }
  return said === undefined && (Object(land) as { onto?: unknown }).onto !== undefined
}

const project = () =>
  z.pipe(
    // What is landed onto a branch has to be on one of its own.
    z.transform((value: unknown) => (isBranchless(value) ? { ...value, worktrees: true } : value)),
    section({
      path: s.or(folder(), '.'),
      limit: limit(),
      agent: s.or(s.plain(200), 'claude'),
      land: s.optional(landing()),
      worktrees: s.or(worktrees(), null),
      resources: s.or(z.array(s.plain(100), 'must be a list of names'), []),
    }),
  )

/** A file as it may be written. */
export const fileSchema = () =>
  section({
    busy_timeout_ms: s.or(s.whole(0, BUSY_MS_MAX), 5000),
    slots: filled({ max: s.or(s.whole(0, SLOTS_MAX), 4) }),
    per_user_serialization: filled({
      enabled: s.optional(s.yesOrNo()),
      lock_timeout_seconds: s.optional(s.seconds(1, RUN_SECONDS_MAX)),
    }),
    projects: byName(project()),
    agents: byName(agent()),
    resources: s.or(
      z.record(
        z.string().check(z.regex(/^[A-Za-z]\w{0,49}$/, 'is no name of a resource')),
        resource(),
        'must be an object',
      ),
      {},
    ),
    users: byName(section({ weight: s.optional(weight()), limit: limit() })),
    groups: byName(section({ limit: limit() })),
    pool: filled({ limit: limit() }),
    // A hook reads these itself, without this schema: see src/hooks/settings.ts.
    hooks: filled({
      mode: s.or(z.enum([...MODES, 'off'], 'must be "auto", "strict", "warn" or "off"'), 'auto'),
      ttl_seconds: s.or(s.ttl(), RESERVATION_TTL_MS / 1000),
      unreachable: s.optional(z.enum(['open', 'closed'], 'must be "open" or "closed"')),
      discard: s.or(z.enum(['save', 'refuse'], 'must be "save" or "refuse"'), 'save'),
    }),
    reservations: filled({
      scope: s.or(
        z.enum(['checkout', 'repository'], 'must be "checkout" or "repository"'),
        'checkout',
      ),
    }),
    runs: filled({
      ttl_seconds: s.or(s.ttl(), 60),
      grace_seconds: s.or(s.seconds(0, 3600), 10),
      log_bytes_max: s.or(s.whole(1024, LOG_BYTES_MAX), 10 * 1024 ** 2),
    }),
    memory: filled({
      strategies: strategies(),
      embeddings: filled(embeddings()),
    }),
    alerts: alerts(),
    peers: filled({ listen: s.optional(listening()) }),
    // A store is opened with these, without this schema: see src/stores/open.ts.
    retention: retention(),
  })

export type LandConfig = z.output<ReturnType<typeof landing>>
export type FileConfig = z.output<ReturnType<typeof fileSchema>>

/** Several parts of a daemon read the file as it starts; to make the schema is most of the work. */
let schema: ReturnType<typeof fileSchema> | undefined

/** Checks what stands in a file, and finds all problems together; without any there is `said`. */
export function checkFile(raw: unknown): { said: FileConfig | undefined; problems: string[] } {
  schema ??= fileSchema()
  const { data: said, error } = schema.safeParse(raw)
  return { said, problems: (error?.issues ?? []).flatMap(sentencesOf) }
}

/** Keys that there were, and what stands for them now. */
const GONE = new Map([
  ['memory.embeddings.dimensions', 'the endpoint is asked how long its vectors are'],
  ['memory.labels', 'a pair of notes is marked `contradicts` without a model'],
  ['memory.quotas', 'retention bounds what leaves'],
])

function sentencesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ')
    return issue.keys.map((key) => {
      const place = placeOf([...issue.path, key])
      const why = GONE.get(place)
      return why ? `${place} is gone: ${why}` : `${place}: no such key; ${hintOf(key, known)}`
    })
  }
  const message = issue.code === 'invalid_key' ? issue.issues[0]!.message : issue.message
  return [`${placeOf(issue.path) || 'the file'} ${message}`]
}

/** `users."al@home".weight`: a name that could be taken for something else is quoted. */
export function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (/^[\w-]+$/.test(String(key)) ? String(key) : JSON.stringify(key)))
    .join('.')
}
