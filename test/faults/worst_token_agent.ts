import { Agent, request } from 'node:http'
// reason: it is no test, and paces what it does
import { setTimeout as pause } from 'node:timers/promises'

/**
 * The worst that one token can do: all of it at once, over and over, until it is told to end. Says
 * how each kind of ask was answered, as JSON: which status how often, and which budgets it met.
 */
const [url = '', token = ''] = process.argv.slice(2)
const { hostname, port } = new URL(url)
const authorization = `Bearer ${token}`

const met = new Map<string, Map<string, number>>()
let isOver = false

function count(kind: string, how: string): void {
  const ways = met.get(kind) ?? new Map<string, number>()
  met.set(kind, ways.set(how, (ways.get(how) ?? 0) + 1))
}

const kept = new Agent({ keepAlive: true, maxSockets: 64 })

interface Sent {
  method?: string
  agent?: Agent | false
  /** Takes the head of the answer, and never its body. */
  deaf?: boolean
}

/** One request, whose answer is only counted. */
function ask(kind: string, path: string, input: object | undefined, how: Sent = {}): Promise<void> {
  const body = input && JSON.stringify(input)
  const headers = {
    authorization,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...(body && { 'content-length': Buffer.byteLength(body) }),
  }
  const { method = 'POST', agent = kept, deaf } = how
  return new Promise((resolve) => {
    const sent = request({ hostname, port, path, method, headers, agent }, (response) => {
      let text = ''
      const { statusCode = 0 } = response
      if (deaf && statusCode === 200) {
        count(kind, '200')
        response.pause()
        return
      }
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text.length < 4096 ? (text += chunk) : ''))
      response.on('close', () => {
        const budget = /"budget":"(\w+)"/.exec(text)?.[1]
        count(kind, budget ?? `${statusCode}`)
        resolve()
      })
    })
    sent.on('error', () => {
      count(kind, 'cut off')
      resolve()
    })
    sent.end(body)
  })
}

const post = (name: string, input: object, how?: Sent) => ask(name, `/v1/${name}`, input, how)

const tool = (name: string, given: object) =>
  ask(`mcp ${name}`, '/mcp', {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name, arguments: given },
  })

/**
 * So many connections begin in one step of time. All at once would be worse, and needs no token:
 * the system takes them one by one, see docs/security.md.
 */
const STEP = 50
const STEP_MS = 250
let begun = 0

/** `at_once` of these, each asked for again when it is answered. */
function over(at_once: number, each: (i: number) => Promise<unknown>): void {
  let next = 0
  for (let i = 0; i < at_once; i += 1) {
    void (async () => {
      await pause(Math.floor((begun += 1) / STEP) * STEP_MS)
      while (!isOver) {
        await each((next += 1))
        // A refused client that asks again at once is as bad as any; but it lets others in.
        await pause(1)
      }
    })()
  }
}

const names = (i: number, of = 100) =>
  Array.from({ length: of }, (_, n) => `worst-${i % 60}-${n}-${'n'.repeat(60)}`)
const TEXT = 'p'.repeat(2 * 1024 * 1024 - 100)
const NOTE = 'n\n'.repeat(400_000)
const PATHS = Array.from({ length: 1000 }, (_, i) => `src/${'deep/'.repeat(8)}file-${i}.ts`)
const single = { agent: false as const }

// Globs that are dear to compare, and many paths to compare them with.
over(10, (i) => post('reserve.add', { paths: [`${'*a*b'.repeat(200)}${i}`, `**/*e*i*.t*${i}`] }))
over(10, (i) => post('reserve.check', { paths: PATHS.slice(i % 900, (i % 900) + 100) }))
over(10, (i) =>
  post('reserve.touch', { paths: PATHS.slice(i % 900, (i % 900) + 100), mode: 'auto' }),
)
// Prompts, notes, tasks, locks, signs of life, and the longest lists there are.
over(10, (i) => post('queue.add', { prompt: TEXT, project: 'p', user: `u${i}`, id: `worst-${i}` }))
over(5, (i) => post('memory.put', { key: `k${i % 3}`, content: `${NOTE}${i}`, scope: 'global' }))
over(10, (i) => post('task.create', { title: `t${i}`, body: 'b'.repeat(200_000) }))
over(20, (i) => post('lock.acquire', { names: names(i) }))
over(20, (i) => post('lock.acquire', { name: `one-${i}` }))
over(10, () => post('agent.heartbeat', {}))
over(10, () => post('task.list', { limit: 1000 }))
over(10, () => post('event.list', { limit: 1000, by: 'nobody' }))
over(10, () => post('lock.list', { limit: 1000 }))
over(5, () => ask('metrics', '/metrics', undefined, { method: 'GET' }))
// The same through MCP's door.
over(10, () => tool('list_tasks', { limit: 1000 }))
over(10, (i) => tool('memory_search', { query: `n ${i}`, limit: 50 }))
over(10, (i) => tool('reserve_paths', { paths: [`${'*a*b'.repeat(200)}${i}`] }))
// What is dear to read: many messages in one, many fields, many entries, many levels.
const HEAVY = { text: 'm'.repeat(60_000) }
const batch = (name: string, given: object) =>
  ask(
    `mcp batch ${name}`,
    '/mcp',
    Array.from({ length: 100 }, (_, id) => ({
      ...{ jsonrpc: '2.0', id, method: 'tools/call' },
      params: { name, arguments: given },
    })),
  )
const fields = (of: number) =>
  Object.fromEntries(Array.from({ length: of }, (_, i) => [`unknown-${i}`, i]))
const deep = (levels: number): object =>
  JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as object
const DEEP = deep(1_000)
const MANY = [fields(45_000), fields(9_000), fields(900)]
const LABELS = Array.from({ length: 100_000 }, (_, i) => `${i}`)
over(10, (i) => post('task.create', { title: `heavy ${i}`, metadata: HEAVY }))
over(10, () => batch('list_tasks', { limit: 1000 }))
over(5, (i) => batch('create_task', { title: `of a batch ${i}`, metadata: { i } }))
over(10, (i) => post('task.list', MANY[i % 3]!))
over(10, (i) => post('task.create', { title: 't', labels: LABELS.slice(0, i % 2 ? 900 : 100_000) }))
over(10, () => post('task.create', { title: 't', metadata: { DEEP } }))
over(10, () => tool('create_task', { title: 't', metadata: { DEEP } }))
// Streams of all that ever happened, which nobody reads; and answers that nobody takes.
const deaf = { agent: false as const, deaf: true }
over(500, () => ask('stream', '/v1/events?after=0-0', undefined, { ...deaf, method: 'GET' }))
over(200, (i) => post('task.get', { id: `worst-${i % 20}` }, deaf))
// Waits, for one lock and for a hundred each; more than anybody may have open.
over(2_200, () => post('lock.acquire', { name: 'worst-0', wait_seconds: 600 }, single))
over(400, (i) => post('lock.acquire', { names: names(i), wait_seconds: 600 }, single))
over(300, () => post('task.claim', { project: 'none', wait_seconds: 600 }, single))

process.stdin.resume().on('end', () => {
  isOver = true
  const told = [...met].map(([kind, ways]) => [kind, Object.fromEntries(ways)])
  process.stdout.write(`${JSON.stringify(Object.fromEntries(told))}\n`, () => process.exit(0))
})
process.stdout.write('begun\n')
