import { Agent } from 'node:http'
import { connect } from '../../src/index.ts'

/**
 * A process with many agents that share a few connections to one daemon, at `URL` with `TOKEN`.
 * Waits for a line; then each agent claims a task, waiting for one if need be, and completes it.
 * Prints for each: agent, task, fence, and how long the claim took.
 */
const { URL: url = '', TOKEN: token = '', NAME = '', AGENTS = '', CONNECTIONS = '' } = process.env
// The client asks for no bound of its own, and its types know nothing of this one.
;(Agent as unknown as { defaultMaxSockets: number }).defaultMaxSockets = Number(CONNECTIONS)

const client = await connect({ url, token, agent: NAME, retry_seconds: 60 })
await client.task.list({ limit: 1 })
process.stdout.write('ready\n')
await new Promise((resolve) => void process.stdin.once('data', resolve))

async function claim(agent: string): Promise<string> {
  const asked_ms = performance.now()
  const mine = client.as(agent)
  const claimed = await mine.claimNext({ wait_seconds: 60, ttl_seconds: 120 })
  const took_ms = Math.round(performance.now() - asked_ms)
  if (!claimed) return `${agent} none 0 ${took_ms}`
  const { id } = claimed.task
  await mine.task.status({ id, status: 'done' })
  return `${agent} ${id} ${claimed.lease.fence} ${took_ms}`
}

const agents = Array.from({ length: Number(AGENTS) }, (_, i) => `${NAME}-${i}`)
const lines = await Promise.all(agents.map(claim))
process.stdout.write(`${lines.join('\n')}\n`)
await client.close()
process.stdin.destroy()
