/**
 * A hostile agent, as a dispatcher starts it: it has the environment of its run, and was told (in
 * its prompt) the names of what another user has. It knows the wire and nothing of our code. Tries
 * one thing after the other and writes down what came of each.
 */
import { execFile } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

const { LEASEHOLD_URL: url, LEASEHOLD_TOKEN: token, OUT } = process.env
const { LEASEHOLD_TASK: task, LEASEHOLD_RUN: run } = process.env
const fence = Number(process.env.LEASEHOLD_FENCE)
const { bob, bin, pids, count } = JSON.parse(await text(process.stdin))

/** How long a stream that should say nothing is listened to. */
const LISTEN_MS = 300

const HEADERS = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

async function ask(path, options = {}) {
  const reply = await fetch(url + path, { redirect: 'manual', ...options })
  return { refused: reply.status >= 400, said: `${reply.status} ${await reply.text()}` }
}

const post =
  (name, input = {}, headers = {}) =>
  () =>
    ask(`/v1/${name}`, {
      method: 'POST',
      headers: { ...HEADERS, ...headers },
      body: JSON.stringify(input),
    })

const get =
  (path, headers = {}) =>
  () =>
    ask(path, { headers: { authorization: HEADERS.authorization, ...headers } })

const mcp = (method, params) => async () => {
  const accept = 'application/json, text/event-stream'
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const { refused, said } = await ask('/mcp', {
    method: 'POST',
    headers: { ...HEADERS, accept },
    body,
  })
  return { refused: refused || /"isError":true|"error":\{/.test(said), said }
}
const tool = (name, given = {}) => mcp('tools/call', { name, arguments: given })
const resource = (uri) => mcp('resources/read', { uri })

/** Bytes as they are: a client library would tidy them. */
const raw = (lines) => () =>
  new Promise((resolve) => {
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    let said = ''
    socket.on('data', (bytes) => (said += bytes))
    socket.on('close', () => resolve({ refused: !/^HTTP\/1\.1 [23]/.test(said), said }))
    socket.on('error', () => undefined)
    const head = [...lines.map((line) => line.replaceAll('HOST', host)), 'connection: close']
    socket.end(`${head.join('\r\n')}\r\n\r\n`)
  })

const cli =
  (...args) =>
  () =>
    new Promise((resolve) => {
      execFile(process.execPath, [bin, ...args], (error, out, err) => {
        resolve({ refused: error !== null, said: out + err })
      })
    })

const stream = (after) => async () => {
  const ended = new AbortController()
  const reply = await fetch(`${url}/v1/events?after=${after}`, {
    headers: { authorization: HEADERS.authorization },
    signal: ended.signal,
  })
  let said = `${reply.status} `
  setTimeout(() => ended.abort(), LISTEN_MS)
  const decoder = new TextDecoder()
  try {
    for await (const chunk of reply.body) said += decoder.decode(chunk, { stream: true })
  } catch {
    // We have heard enough.
  }
  return { refused: reply.status >= 400, said }
}

const own = { project: 'mallory-project', user: 'mallory' }
const here = { id: run, fence, process: pids.like }
const notes = { scope: 'project:bob-project', key: 'bob-note' }
const touch = { project: 'bob-project', mode: 'auto' }
const held = { name: bob.lock, fence: bob.fence }
const mark = process.env.LEASEHOLD_MARK
const group = (pid) => ({ ...pids.like, pid, start: pids.starts[pid] ?? 0, mark })

/** What is tried, and how. */
const TRIES = [
  // Another user's tasks.
  ['read a prompt', post('task.get', { id: 'bob-waiting' })],
  ['read the prompt of a run', post('task.get', { id: 'bob-busy' })],
  ['read it by GET', get('/v1/task.get?id=bob-waiting')],
  ['explain a task', post('task.explain', { id: 'bob-waiting' })],
  ['rewrite a waiting prompt', post('task.update', { id: 'bob-waiting', version: 1, body: 'x' })],
  ['rewrite a running prompt', post('task.update', { id: 'bob-busy', version: 2, body: 'x' })],
  ['retitle a task', post('task.update', { id: 'bob-task', version: 1, title: 'x' })],
  ['cancel a waiting task', post('queue.cancel', { id: 'bob-waiting' })],
  ['cancel a run', post('queue.cancel', { id: 'bob-busy' })],
  ['cancel a task', post('task.status', { id: 'bob-task', status: 'cancelled' })],
  ['finish a task', post('task.status', { id: 'bob-busy', status: 'done', fence: bob.run_fence })],
  ['claim a task', post('task.claim', { id: 'bob-task' })],
  ['claim an enqueued task', post('task.claim', { id: 'bob-waiting', queued: true })],
  ['put a task back', post('queue.retry', { id: 'bob-cancelled' })],
  ['enqueue for another', post('queue.add', { ...own, user: 'bob', prompt: 'x' })],
  ['enqueue elsewhere', post('queue.add', { ...own, project: 'bob-project', prompt: 'x' })],
  ['make a task for another', post('task.create', { ...own, user: 'bob', title: 'x' })],
  ['make a task of nobody', post('task.create', { title: 'x' })],
  ['choose the id of a task', post('task.create', { ...own, title: 'x', id: 'bob-next' })],
  ['wait for a task', post('task.create', { ...own, title: 'x', depends_on: ['bob-task'] })],
  // Runs.
  ['look at a run', post('run.get', { id: bob.run })],
  ['read a log', post('run.output', { id: bob.run })],
  ['end a run', post('run.finish', { id: bob.run, fence: bob.run_fence, exit_code: 0 })],
  ['read a log by a path', post('run.output', { id: '../../admin.token' })],
  ['look at a run by a path', post('run.get', { id: `${bob.run}/../..` })],
  // Locks.
  ['take the lock of a task', post('lock.acquire', { name: 'task:bob-task' })],
  ['take the lock of a run', post('lock.acquire', { name: 'task:bob-busy', takeover: true })],
  ['take the lock of a user', post('lock.acquire', { name: 'user:bob' })],
  ['wait for a user', post('lock.acquire', { name: 'user:bob', wait_seconds: 1 })],
  ['take several at once', post('lock.acquire', { names: ['mine', bob.lock] })],
  ['release a lock', post('lock.release', held)],
  ['release without a fence', post('lock.release', { name: bob.lock })],
  ['renew a lock', post('lock.renew', held)],
  ['hand a lock to myself', post('lock.hand_off', { ...held, to: 'me' })],
  ['force a lock', post('lock.force_release', { name: bob.lock })],
  ['explain a lock', post('lock.explain', { name: bob.lock })],
  ['take a path as a lock', post('lock.acquire', { name: 'path:bob-project:bob/**' })],
  // Other names.
  ['act as another', post('lock.release', { ...held, agent: 'bob-agent' })],
  ['act as an admin', post('lock.release', { ...held, agent: 'admin' })],
  ['act by a header', post('lock.release', held, { 'leasehold-caller': '{"admin":true}' })],
  ['give signs of another’s life', post('agent.heartbeat', { agent: 'bob-agent' })],
  // Files.
  ['reserve elsewhere', post('reserve.add', { paths: ['x/**'], project: 'bob-project' })],
  ['edit elsewhere', post('reserve.touch', { ...touch, paths: ['bob/x'] })],
  ['reserve what is reserved', post('reserve.add', { paths: ['bob/**'], project: 'bob-project' })],
  // Notes.
  ['read a note', post('memory.get', notes)],
  ['read what a note was', post('memory.history', notes)],
  ['rewrite a note', post('memory.put', { ...notes, content: 'x', based_on: 1 })],
  ['write to everybody', post('memory.put', { key: 'x', content: 'x' })],
  ['write for a user', post('memory.put', { key: 'x', content: 'x', scope: 'user:bob' })],
  ['delete a note', post('memory.delete', { ...notes, based_on: 1 })],
  ['prune notes', post('memory.prune', { scope: notes.scope })],
  ['notes of a task', post('memory.context', { task_id: 'bob-task' })],
  ['settle a conflict', post('conflict.resolve', { id: bob.conflict, choose: 'theirs' })],
  ['settle a pair', post('duplicate.resolve', { id: 'bob-pair', action: 'keep_both' })],
  // The dispatcher and the server.
  ['be the server', post('lock.acquire', { name: 'leasehold:daemon' })],
  ['be a dispatcher', post('lock.acquire', { name: 'leasehold:dispatcher:elsewhere' })],
  ['wait to be one', post('lock.acquire', { name: 'leasehold:alerts', wait_seconds: 1 })],
  ['release the server', post('lock.release', bob.server)],
  ['make a token', post('token.create', { secret_hash: 'a'.repeat(64), role: 'admin' })],
  ['make one unbound', post('token.create', { secret_hash: 'b'.repeat(64), role: 'agent' })],
  ['list tokens', post('token.list')],
  ['revoke a token', post('token.revoke', { id: bob.token })],
  ['pause the queue', post('queue.pause')],
  ['pause a user', post('queue.pause', { user: 'bob' })],
  ['resume the queue', post('queue.resume')],
  ['raise a limit', post('queue.limit', { user: 'mallory', max: 99 })],
  ['lower a limit', post('queue.limit', { user: 'bob', max: 0 })],
  ['clean up', post('queue.cleanup', { older_than_seconds: 0 })],
  ['release a user', post('queue.release_user', { user: 'bob' })],
  ['count what waits', post('queue.status')],
  ['read statistics', post('stats.get')],
  ['read what is going on', post('now.get')],
  ['read metrics', get('/metrics')],
  ['embed again', post('memory.retry')],
  ['prune the store', post('db.prune')],
  ['restore the store', post('db.restore', { path: '/tmp/x' })],
  ['raise the epoch', post('epoch.raise')],
  ['reload the configuration', post('config.reload')],
  ['stop the server', post('server.stop')],
  // The files of the store, and headers.
  ['a file by dots', raw(['GET /../admin.token HTTP/1.1', 'host: HOST'])],
  ['a file by escapes', get('/%2e%2e/%2e%2e/admin.token')],
  ['a file below the page', get('/assets/..%2f..%2fserver.json')],
  ['a file by two slashes', raw(['GET //admin.token HTTP/1.1', 'host: HOST'])],
  ['a file as an operation', get('/v1/..%2f..%2fconfig.json')],
  ['a change by GET', get(`/v1/lock.release?name=${encodeURIComponent(bob.lock)}`)],
  ['another method', post('task.get', { id: 'bob-task' }, { 'x-http-method-override': 'GET' })],
  ['another host', raw(['GET /v1/task.list HTTP/1.1', 'host: evil.example'])],
  ['another origin', get('/v1/task.list', { origin: 'https://evil.example' })],
  ['no token', get('/v1/task.list', { authorization: '' })],
  ['a token in the address', raw([`GET /v1/task.list?token=${token} HTTP/1.1`, 'host: HOST'])],
  [
    'two tokens',
    raw(['GET /metrics HTTP/1.1', 'host: HOST', `authorization: Bearer ${token}, Bearer x`]),
  ],
  ['a page’s cookie', get('/v1/task.list', { authorization: '', cookie: 'leasehold=x' })],
  // The same through MCP.
  ['tool: a task', tool('get_task', { task_id: 'bob-busy' })],
  ['tool: rewrite', tool('update_task', { task_id: 'bob-waiting', version: 1, body: 'x' })],
  ['tool: status', tool('update_task_status', { task_id: 'bob-task', status: 'done' })],
  ['tool: cancel', tool('cancel_task', { task_id: 'bob-waiting' })],
  ['tool: claim', tool('claim_task', { task_id: 'bob-task' })],
  ['tool: lock a task', tool('acquire_task_lock', { task_id: 'bob-task' })],
  ['tool: as another', tool('release_task_lock', { task_id: 'bob-busy', agent_id: bob.agent })],
  ['tool: release', tool('release_lock', held)],
  ['tool: hand off', tool('hand_off_lock', { ...held, to: 'me' })],
  ['tool: our names', tool('acquire_lock', { name: 'leasehold:daemon' })],
  ['tool: enqueue', tool('enqueue_task', { ...own, user: 'bob', prompt: 'x' })],
  ['tool: a note', tool('memory_get', notes)],
  ['tool: rewrite a note', tool('memory_put', { ...notes, content: 'x' })],
  ['tool: a conflict', tool('conflict_resolve', { id: bob.conflict, choose: 'theirs' })],
  ['resource: a task', resource('leasehold://task/bob-busy')],
  ['resource: a file', resource('leasehold://task/../../admin.token')],
  ['resource: a real file', resource('file:///etc/passwd')],
  // With the command line.
  ['command: force', cli('lock', 'force-release', bob.lock)],
  ['command: with --force', cli('--force', 'lock', 'release', bob.lock, '--agent', 'bob-agent')],
  ['command: a token', cli('token', 'create', '--role', 'admin')],
  ['command: approve', cli('config', 'approve', '--yes')],
  ['command: the store itself', cli('db', 'backup', '/tmp/never')],
  // The host.
  ...pids.named.flatMap((pid) => [
    [`run as process ${pid}`, post('run.start', { ...here, group: group(pid) })],
    [
      `name the group ${pid}`,
      post('lock.name_group', { name: `task:${task}`, fence, group: group(pid) }),
    ],
  ]),
]

/** What is answered, and must tell nothing of another user. */
const LOOKS = [
  ['tasks', post('task.list')],
  ['tasks of a project', post('task.list', { project: 'bob-project' })],
  ['several tasks', post('task.peek', { ids: ['bob-busy', 'bob-task'] })],
  ['the next task', post('task.claim', { project: 'bob-project', queued: true })],
  ['the queue', post('queue.list', { user: 'bob' })],
  ['runs', post('run.list', { user: 'bob' })],
  ['locks', post('lock.list')],
  ['a lock', post('lock.status', { name: bob.lock })],
  ['several locks', post('lock.peek', { names: [bob.lock, 'task:bob-busy'] })],
  ['who waits', post('lock.waiters')],
  ['reservations', post('reserve.list', { project: 'bob-project' })],
  ['a path', post('reserve.check', { paths: ['bob/x'], project: 'bob-project' })],
  ['agents', post('agent.list')],
  ['notes', post('memory.list', { scope: notes.scope })],
  ['found notes', post('memory.search', { query: 'secret' })],
  ['conflicts', post('conflict.list')],
  ['pairs', post('duplicate.list')],
  ['events', post('event.list', { limit: 1000 })],
  ['events of a task', post('event.list', { task_id: 'bob-busy' })],
  ['a stream', stream('0-0')],
  ['tool: tasks', tool('list_tasks')],
  ['tool: locks', tool('list_locks')],
  ['tool: notes', tool('memory_search', { query: 'secret' })],
  ['resource: ready tasks', resource('leasehold://tasks/ready')],
]

const results = { tries: [], looks: [] }
for (const [name, table] of [
  ['tries', TRIES.slice(0, count)],
  ['looks', count === undefined ? LOOKS : []],
]) {
  for (const [what, how] of table) {
    const { refused, said } = await how().catch((error) => ({ refused: true, said: `${error}` }))
    results[name].push({ what, refused, said })
  }
}
writeFileSync(`${OUT}/.results`, JSON.stringify(results))
renameSync(`${OUT}/.results`, `${OUT}/results`)
// The run goes on until it is cancelled: what was tried may have its effect later.
setInterval(() => undefined, 60_000)
