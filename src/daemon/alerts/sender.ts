import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { headerText } from '../../reach/header_text.ts'
import type { Config } from '../config/config.ts'

const WEBHOOK_MS = 10_000
const COMMAND_MS = 30_000
const SAID_MAX = 500

export type Channels = Config['alerts']

/** What is sent: the beginning of a condition, or its end. */
export interface Notice {
  /** The same for every try, so that a receiver can tell when it gets one twice. */
  id: string
  state: 'raised' | 'cleared'
  rule: string
  subject: string
  message: string
  since: string
  ended_at: string | null
  host: string
}

export const hasChannel = ({ webhook, command }: Channels) => webhook !== null || command !== null

export type Send = (notice: Notice, env: NodeJS.ProcessEnv) => Promise<void>

/** How notices are sent, by channel. Each throws when a notice did not get there. */
export function sendersOf({ webhook, command }: Channels): Map<string, Send> {
  const senders = new Map<string, Send>()
  if (webhook) senders.set('webhook', (notice, env) => post(webhook, notice, env))
  if (command) senders.set('command', (notice, env) => run(command, notice, env))
  return senders
}

/**
 * Signed, so that the receiver knows that it is from us and how old it is: HMAC-SHA256 over the
 * time, a dot, and the body as it was sent.
 */
async function post(
  { url, secret_env }: NonNullable<Channels['webhook']>,
  notice: Notice,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const body = JSON.stringify(notice)
  const timestamp = String(Math.floor(Date.now() / 1000))
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'leasehold-timestamp': timestamp,
    'leasehold-id': headerText(notice.id),
  }
  if (secret_env !== null) {
    const secret = env[secret_env]
    if (!secret) throw new Error(`the environment variable ${secret_env} is not set`)
    const sum = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
    headers['leasehold-signature'] = `v1=${sum}`
  }
  const signal = AbortSignal.timeout(WEBHOOK_MS)
  // A redirect could lead what was signed for one to another.
  const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' })
  await answer.body?.cancel()
  if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`)
}

/** No shell: the notice is text that others wrote, and comes on stdin as JSON. */
function run([program, ...args]: string[], notice: Notice, env: NodeJS.ProcessEnv): Promise<void> {
  const { PATH, HOME, LANG } = env
  return new Promise((resolve, reject) => {
    const child = spawn(program!, args, {
      env: { PATH, HOME, LANG },
      stdio: ['pipe', 'ignore', 'pipe'],
      timeout: COMMAND_MS,
      killSignal: 'SIGKILL',
    })
    // First: one that could not be started has no pipes either.
    child.on('error', reject)
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < SAID_MAX) said += text
    })
    // A command that reads nothing closes its end.
    child.stdin.on('error', () => undefined)
    child.stdin.end(`${JSON.stringify(notice)}\n`)
    child.on('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${program} ended with ${signal ?? code}: ${said.trim()}`))
    })
  })
}
