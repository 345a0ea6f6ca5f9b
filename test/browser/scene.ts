import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// oxlint-disable-next-line typescript/no-explicit-any -- what a server answers has any shape
type Json = any

/** Asks a server as its admin. */
export class Asking {
  private readonly open: AbortController[] = []

  constructor(
    readonly url: string,
    private readonly secret: string,
  ) {}

  async ask(name: string, input: Json = {}, signal?: AbortSignal): Promise<Json> {
    const response = await fetch(`${this.url}/v1/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(input),
      ...(signal && { signal }),
    })
    return response.json()
  }

  /** Asks for a lock and stays in its line until `close`. */
  wait(agent: string, names: string[], priority = 5): void {
    const ending = new AbortController()
    this.open.push(ending)
    const input = { names, agent, priority, wait_seconds: 600, ttl_seconds: 600 }
    this.ask('lock.acquire', input, ending.signal).catch(() => undefined)
  }

  close(): void {
    for (const each of this.open) each.abort()
  }
}

/** Prints as a coding agent does, for longer than anybody looks. */
const AGENT = `
echo "Reading the task"; sleep 0.2
for file in src/login.ts src/session.ts test/login.test.ts src/routes.ts; do
  echo "edit $file (+14 -3)"; sleep 0.3
done
echo "npm test -- --run login"; sleep 0.3
echo "  ✓ signs in with a valid password (12 ms)"
echo "  ✓ locks the account after five failures (31 ms)"
echo "$LEASEHOLD_TASK: 41 tests passed, waiting for the type check"
sleep 600
`

/** Ends as builds end that do not compile. */
const BROKEN = `
printf '\\033[1mnpm run build\\033[0m\\n'
for part in 20 60 100; do printf '\\rtransforming %s %%' $part; done; echo
printf '\\033[31merror\\033[0m TS2345: Argument of type string is not assignable to number\\n'
printf '  at \\033[36msrc/checkout.ts\\033[0m:\\033[33m41\\033[0m\\n'
exit 2
`

/** What the dispatcher of the scene runs; written before the server starts. */
export function configure(state: string, more: Json = {}): void {
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const project = { path: '.', agent: 'coder' }
  const config = {
    slots: { max: 6 },
    projects: { web: project, api: project, infra: { ...project, limit: 1 }, ...more.projects },
    agents: {
      coder: { command: ['/bin/sh', '-c', AGENT] },
      broken: { command: ['/bin/sh', '-c', BROKEN] },
      ...more.agents,
    },
    runs: { ttl_seconds: 60, grace_seconds: 1 },
  }
  writeFileSync(join(state, 'config.json'), JSON.stringify(config), { mode: 0o600 })
}

const TITLES = [
  'Mend the redirect after sign-in',
  'Add rate limits to the public API',
  'Move avatars to object storage',
  'Explain failed payments to customers',
  'Upgrade to PostgreSQL 17',
  'Write a test for the import of invoices',
  'Show time zones in the calendar',
  'Remove the old feature flags',
  'Speed up the search page',
  'Translate the checkout into German',
  'Rotate the signing keys every month',
  'Find out why builds are slow on Mondays',
]
const BODY = `What is wrong, how to see it, and what would be good enough.

- keep the API as it is
- add a test`
const USERS = ['ada', 'grace', 'linus', 'barbara', 'edsger']
const PROJECTS = ['web', 'api', 'infra']
const LABELS = ['bug', 'ui', 'perf', 'docs', 'security']

const pick = <T>(list: readonly T[], i: number): T => list[i % list.length]!

/** A busy morning: the same one every time. */
export async function play(asking: Asking, bustle_ms = 0): Promise<void> {
  await past(asking)
  await bustle(asking, bustle_ms)
  await board(asking)
  await queue(asking)
  await limits(asking)
  await locks(asking)
  await reservations(asking)
  await memories(asking)
}

/** Tasks that agents have claimed and finished, or not. */
async function past(asking: Asking): Promise<void> {
  const ends = ['done', 'done', 'done', 'review', 'failed', 'done', 'cancelled', 'done']
  for (let i = 0; i < 24; i += 1) {
    const id = `W-${101 + i}`
    const agent = `claude-${1 + (i % 4)}`
    const { title, ...rest } = taskOf(i)
    await asking.ask('task.create', { id, title, ...rest, agent: 'planner' })
    const { lease } = await asking.ask('task.claim', { id, agent })
    if (i % 8 === 5) {
      const to = 'codex-1'
      const passed = await asking.ask('lock.hand_off', { name: lease.name, to, agent })
      await asking.ask('task.status', { id, status: 'done', agent: to, fence: passed.fence })
      continue
    }
    await asking.ask('task.status', { id, status: pick(ends, i), agent, fence: lease.fence })
  }
}

function taskOf(i: number): Json {
  return {
    title: pick(TITLES, i * 5 + Math.floor(i / 12)),
    body: BODY,
    project: pick(PROJECTS, i),
    user: pick(USERS, i * 3),
    priority: pick([5, 5, 7, 3, 5, 8], i),
    labels: [pick(LABELS, i)],
  }
}

/** Agents that take turns with a few locks, for a while. */
async function bustle(asking: Asking, ms: number): Promise<void> {
  const until = performance.now() + ms
  const names = ['git:web', 'git:api', 'db:staging', 'deploy:production']
  const turns = ['claude-1', 'claude-2', 'claude-4', 'codex-1', 'cursor-ada'].map(
    async (agent, a) => {
      for (let i = 0; performance.now() < until; i += 1) {
        const name = pick(names, i * 3 + a)
        const got = await asking.ask('lock.acquire', { name, agent, wait_seconds: 60 })
        await pause(700 + ((i * 977 + a * 541) % 2600))
        if (i % 6 === 5) await asking.ask('lock.force_release', { name, reason: 'took too long' })
        else await asking.ask('lock.release', { name, agent, fence: got.fence })
        await pause(200 + ((i * 353 + a * 197) % 900))
      }
    },
  )
  await Promise.all(turns)
}

// reason: a scene in which nothing took any time would show nothing
export const pause = (ms: number) => new Promise((resolve) => void setTimeout(resolve, ms))

async function board(asking: Asking): Promise<void> {
  for (let i = 0; i < 14; i += 1) {
    const id = `W-${201 + i}`
    const depends_on = i % 5 === 4 ? [`W-${201 + i - 1}`] : []
    await asking.ask('task.create', { id, ...taskOf(i + 7), depends_on, agent: 'planner' })
  }
  for (const [i, id] of ['W-201', 'W-202', 'W-203'].entries()) {
    await asking.ask('task.claim', { id, agent: `claude-${i + 1}`, ttl_seconds: 300 })
  }
}

async function queue(asking: Asking): Promise<void> {
  const broken = { prompt: 'Translate the checkout into German', agent_command: 'broken' }
  await asking.ask('queue.add', { id: 'Q-broken', ...broken, project: 'web', user: 'margaret' })
  const waiting = [7, 4, 3, 5, 2]
  for (const [u, user] of USERS.entries()) {
    for (let i = 0; i < waiting[u]!; i += 1) {
      const { title, body, priority, project } = taskOf(u * 5 + i)
      const prompt = `${title}\n\n${body}`
      await asking.ask('queue.add', { id: `Q-${user}-${i + 1}`, prompt, project, user, priority })
    }
  }
}

/** Not all users are equal, and not all projects. */
async function limits(asking: Asking): Promise<void> {
  await asking.ask('queue.limit', { user: 'grace', weight: 2 })
  await asking.ask('queue.limit', { user: 'edsger', weight: 0.5 })
  await asking.ask('queue.limit', { project: 'web', max: 3 })
  await asking.ask('queue.limit', { group: 'migration', max: 1 })
  await asking.ask('queue.limit', { max: 8 })
}

async function locks(asking: Asking): Promise<void> {
  const hold = (agent: string, name: string, ttl_seconds: number) =>
    asking.ask('lock.acquire', { name, agent, ttl_seconds })
  await hold('claude-1', 'git:web', 600)
  await hold('claude-2', 'db:staging', 300)
  await hold('codex-1', 'git:api', 900)
  await hold('release-bot', 'deploy:production', 120)
  await hold('cursor-ada', 'port:5173', 3600)
  await hold('late-agent', 'cache:warm', 1)
  await hold('claude-3', 'git:infra', 600)
  await asking.ask('lock.force_release', { name: 'git:infra', reason: 'the agent was stuck' })
  asking.wait('claude-2', ['git:web'])
  asking.wait('claude-4', ['git:web'], 7)
  asking.wait('codex-1', ['deploy:production'])
  asking.wait('cursor-ada', ['db:staging', 'git:api'])
  await settled(asking, 4)
  // This would close a ring: claude-2 waits for claude-1 already.
  await asking.ask('lock.acquire', { name: 'db:staging', agent: 'claude-1', wait_seconds: 5 })
  await asking.ask('lock.renew', { name: 'git:web', fence: 1, agent: 'ghost' })
}

async function settled(asking: Asking, waiters: number): Promise<void> {
  for (;;) {
    const { items } = await asking.ask('lock.waiters')
    if (items.length >= waiters) return
    await pause(20)
  }
}

async function reservations(asking: Asking): Promise<void> {
  const reserve = (agent: string, project: string, paths: string[], more: Json = {}) =>
    asking.ask('reserve.add', { paths, project, agent, ttl_seconds: 900, ...more })
  await reserve('claude-1', 'web', ['src/login/**', 'src/session.ts'], { reason: 'W-201' })
  await reserve('claude-2', 'web', ['src/search/index.ts', 'test/search/**'])
  await reserve('cursor-ada', 'web', ['docs/**'], { shared: true })
  await reserve('claude-4', 'web', ['docs/**'], { shared: true })
  await reserve('codex-1', 'api', ['migrations/**', 'src/limits/*.go'], { reason: 'W-202' })
}

async function memories(asking: Asking): Promise<void> {
  const put = (agent: string, key: string, content: string, more: Json = {}) =>
    asking.ask('memory.put', { key, content, agent, scope: 'project:web', ...more })
  await put('claude-1', 'build.command', 'npm run build', { confidence: 0.9 })
  await put('claude-2', 'test.command', 'npm test -- --run', { tags: ['test'] })
  await put('codex-1', 'style.imports', 'Imports are sorted by the formatter; do not sort by hand.')
  await put(
    'claude-1',
    'db.migrations',
    'Numbered files in migrations/, never edited once released.',
  )
  await put(
    'claude-3',
    'auth.sessions',
    'Sessions live in Redis.\nThey expire after 30 minutes.\n',
    {
      confidence: 0.6,
    },
  )
  await put(
    'codex-1',
    'auth.sessions',
    'Sessions live in PostgreSQL.\nThey expire after 12 hours.\n',
    {
      confidence: 0.8,
    },
  )
  await put('claude-2', 'api.pagination', '{"style": "cursor", "limit": 100}')
  await put('cursor-ada', 'api.pagination', '{"style": "offset", "limit": 50}')
  await put('claude-1', 'ci.cache', 'The build cache of CI is cleared every night at 02:00 UTC.')
  await put('codex-1', 'build.cache', 'The build cache in CI is cleared each night at 02:00 UTC.')
  await put('claude-4', 'deploy.window', 'Deploy on weekdays before 15:00 UTC.', { tags: ['ops'] })
}
