import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { AgentProcess } from '../hooks/agents.ts'
import { daemonOn } from '../support/daemons.ts'
import { BIN, type Options, type Sandbox, sandbox } from '../support/processes.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const EXAMPLES = join(ROOT, 'examples')
const TITLES = Array.from({ length: 6 }, (_, i) => `Task ${i}`)

/** A sandbox with `leasehold` on its PATH, as after an install. */
function installed(): Sandbox {
  const place = sandbox()
  const folder = place.path('bin')
  mkdirSync(folder)
  const script = `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`
  writeFileSync(join(folder, 'leasehold'), script, { mode: 0o755 })
  place.env['PATH'] = `${folder}:${place.env['PATH']}`
  return place
}

async function addTasks(place: Sandbox): Promise<void> {
  for (const title of TITLES) await place.ok(['task', 'add', title])
}

async function run(place: Sandbox, program: string[], options: Options = {}): Promise<string[]> {
  const { code, out, err } = await place.start([], { program, input: '', ...options }).ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out.trim().split('\n').filter(Boolean)
}

async function expectAllDoneOnce(place: Sandbox, ids: string[]): Promise<void> {
  expect(ids.toSorted()).toEqual(TITLES.map((_, i) => String(i + 1)).toSorted())
  const { items } = await place.ok(['task', 'list', '--status', 'done'])
  expect(items).toHaveLength(TITLES.length)
}

test('five agents in a shell loop do every task once', async () => {
  const place = installed()
  await addTasks(place)
  writeFileSync(place.path('work.sh'), `echo "$TITLE" >> "${place.path('worked')}"\n`)
  const script = join(EXAMPLES, 'shell/five-agents.sh')
  const said = await run(place, ['bash', script, 'sh', place.path('work.sh')])
  await expectAllDoneOnce(
    place,
    said.map((line) => line.split(' ')[1]!),
  )
  const worked = readFileSync(place.path('worked'), 'utf8').trim().split('\n')
  expect(worked.toSorted()).toEqual(TITLES.toSorted())
})

test('the Python agents share the tasks over HTTP', async () => {
  const place = sandbox()
  await addTasks(place)
  const { url } = await daemonOn(place)
  const agent = async (name: string) => {
    const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', name])
    const env = { LEASEHOLD_URL: url, LEASEHOLD_TOKEN: token as string }
    return run(place, ['python3', '-B', join(EXAMPLES, 'python/agent.py')], { env })
  }
  const done = await Promise.all([agent('python-1'), agent('python-2')])
  await expectAllDoneOnce(place, done.flat())
})

const TYPED = `
import os, sys, time
from leasehold_client import Conflict, Held, Leasehold, Lost, NotAllowed, NotFound

def refused(kind, code, what):
    try:
        what()
    except kind as error:
        assert error.code == code, error.code
        assert error.next, "says what to do next"
    else:
        raise AssertionError("not refused: " + code)

server = Leasehold()
other = Leasehold(token=os.environ["OTHER_TOKEN"])
with server.claim(ttl_seconds=1) as work:
    first = work.lease["expires_at"]
    refused(Held, "held", lambda: other.call("task.claim", id=work.task["id"]))
    while work.lease["expires_at"] == first:
        time.sleep(0.02)
    work.check()
refused(Conflict, "illegal_move", lambda: other.call("task.claim", id="1"))
refused(NotFound, "not_found", lambda: server.call("task.claim", id="99"))
lease = server.call("lock.acquire", name="x")
server.call("lock.release", name="x", fence=lease["fence"])
refused(Lost, "lease_expired", lambda: server.call("lock.renew", name="x", fence=lease["fence"]))
refused(NotAllowed, "unauthorized", lambda: Leasehold(token="no").read("task.list"))
try:
    with server.claim() as work:
        raise KeyError("my own")
except KeyError:
    assert server.read("task.get", id="2")["status"] == "failed"
print("typed")
`

test('the Python client renews while it works, and its errors have types', async () => {
  const place = sandbox()
  await place.ok(['task', 'add', 'One'])
  await place.ok(['task', 'add', 'Two'])
  const { url } = await daemonOn(place)
  const tokens: string[] = []
  for (const agent of ['ada', 'bob']) {
    tokens.push((await place.ok(['token', 'create', '--role', 'agent', '--agent', agent])).token)
  }
  const env = {
    LEASEHOLD_URL: url,
    LEASEHOLD_TOKEN: tokens[0]!,
    OTHER_TOKEN: tokens[1]!,
    PYTHONPATH: join(EXAMPLES, 'python'),
  }
  expect(await run(place, ['python3', '-B', '-c', TYPED], { env })).toEqual(['typed'])
})

test('the TypeScript agent does the tasks, and is told who has the lock', async () => {
  const place = sandbox()
  await addTasks(place)
  await place.ok(['lock', 'acquire', 'deploy', '--agent', 'someone'])
  const tsx = join(ROOT, 'node_modules/.bin/tsx')
  const said = await run(place, [tsx, join(EXAMPLES, 'typescript/agent.ts')])
  expect(said.pop()).toMatch(/deploy is held by someone .*; next: /)
  await expectAllDoneOnce(place, said)
})

test('the settings for Claude Code are what init writes, and refuse an edit', async () => {
  const place = installed()
  place.env['LEASEHOLD_DIR'] = undefined
  await run(place, ['git', 'init', '-q'])
  await place.cli(['init', '--yes', '--client', 'claude'])
  const example = (name: string) => readFileSync(join(EXAMPLES, 'claude-code', name), 'utf8')
  expect(example('settings.json')).toBe(readFileSync(place.path('.claude/settings.json'), 'utf8'))
  expect(example('mcp.json')).toBe(readFileSync(place.path('.mcp.json'), 'utf8'))

  const { hooks } = JSON.parse(example('settings.json')) as {
    hooks: { PreToolUse: [{ hooks: [{ command: string }] }] }
  }
  const { command } = hooks.PreToolUse[0].hooks[0]
  const edit = async (session_id: string) => {
    const tool_input = { file_path: place.path('a.ts'), content: 'x' }
    const event = { session_id, cwd: place.folder, tool_name: 'Write', tool_input }
    const agent = new AgentProcess(place, place.folder)
    return (await agent.sh(command, JSON.stringify(event))).out
  }
  expect(await edit('11111111')).not.toContain('deny')
  expect(await edit('22222222')).toContain('deny')
})

test('the workflow for GitHub deploys one at a time', async () => {
  const place = installed()
  const workflow = readFileSync(join(EXAMPLES, 'github-actions/deploy.yml'), 'utf8')
  const [, step] = /- run: (leasehold run .*)/.exec(workflow)!
  const script = `#!/bin/sh
set -e
mkdir busy || touch overlapped
echo deployed
rmdir busy\n`
  writeFileSync(place.path('deploy.sh'), script, { mode: 0o755 })
  const runner = (id: string) =>
    run(place, ['sh', '-c', step!], { env: { LEASEHOLD_AGENT: `gha:web:${id}` } })
  const said = await Promise.all(['1', '2', '3'].map(runner))
  expect(said).toEqual([['deployed'], ['deployed'], ['deployed']])
  expect(existsSync(place.path('overlapped'))).toBe(false)
})
