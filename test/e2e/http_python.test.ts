import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Client } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn } from '../support/daemons.ts'
import { linesOf, type Running, sandbox } from '../support/processes.ts'

const SCRIPT = fileURLToPath(new URL('http_agent.py', import.meta.url))
const TASKS = 300

interface Done {
  task: string
  fence: number
}

async function work(client: Client): Promise<Done[]> {
  const done: Done[] = []
  for (;;) {
    const worked = await client.withTask({}, async (_, { task, lease }) => {
      await client.lock.renew({ name: lease.name, ttl_seconds: 60 })
      return { task: task.id, fence: lease.fence }
    })
    if (!worked) return done
    done.push(worked.result)
  }
}

test('Python and TypeScript agents share tasks over HTTP, each done exactly once', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const admin = await clientOf({ dir: place.state, agent: 'admin' })
  const titles = Array.from({ length: TASKS }, (_, i) => `Task ${i}`)
  await Promise.all(titles.map((title) => admin.task.create({ title })))

  const pythons: Running[] = []
  for (const agent of ['python-1', 'python-2']) {
    const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', agent])
    const env = { LEASEHOLD_URL: daemon.url, LEASEHOLD_TOKEN: token as string }
    pythons.push(place.start([], { program: ['python3', SCRIPT], env }))
  }
  const scripts = [
    await agentClient(place, daemon, 'script-1'),
    await agentClient(place, daemon, 'script-2'),
  ]
  await Promise.all(pythons.map((each) => each.said(/^"ready"$/m)))
  for (const { child } of pythons) child.stdin!.end('go\n')
  const said = await Promise.all([
    ...pythons.map((each) => linesOf<Done>(each)),
    ...scripts.map(work),
  ])

  const done = said.flat()
  expect(new Set(done.map(({ task }) => task)).size).toBe(TASKS)
  expect(done).toHaveLength(TASKS)
  expect(new Set(done.map(({ fence }) => fence)).size).toBe(TASKS)
  // Otherwise one of them had it all to itself, and nothing was shown.
  for (const each of said) expect(each.length).toBeGreaterThan(0)
  const { items } = await admin.task.list({ status: 'done', limit: 1000 })
  expect(items.map((task) => task.attempts)).toEqual(items.map(() => 1))
  expect(items).toHaveLength(TASKS)
  expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
})
