import { Refusal } from '../../core/refusal.ts'
import { sha256 } from '../../machine/digest.ts'
import { bearer } from '../../reach/header_text.ts'
import { loginName } from '../../machine/login.ts'
import { folderOf } from '../../stores/open.ts'
import { host } from '../../machine/process.ts'
import { findDaemon } from '../../reach/server_file.ts'
import type { Context } from './context.ts'

const ASK_MS = 5_000

export const linkHint = (role: 'viewer' | 'admin') =>
  `  Works once, within 10 minutes, as ${role}. Another one: leasehold up --link`

/**
 * Asks the server for a link. The secret is made here and stands behind the #, which browsers keep
 * to themselves: it is in no log, and the server has seen only its hash until it is used.
 */
export async function makeLink(
  context: Context,
  role: 'viewer' | 'admin',
): Promise<{ link: string; expires_in_seconds: number }> {
  const folder = folderOf(context.place)
  const daemon = findDaemon(context.env, folder)
  if (!daemon) throw notServing()
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const secret = randomBytes(32).toString('base64url')
  const for_agent = `web:${loginName()}@${host}`
  const response = await fetch(new URL('/v1/session/link', daemon.url), {
    method: 'POST',
    headers: { authorization: bearer(daemon.secret), 'content-type': 'application/json' },
    body: JSON.stringify({ secret_hash: sha256(secret), role, for_agent }),
    signal: AbortSignal.timeout(ASK_MS),
  }).catch(() => Promise.reject(notServing()))
  const reply: unknown = await response.json()
  // Started anew since we read its secret; with that of the new one we are known.
  const isReplaced =
    response.status === 401 && findDaemon(context.env, folder)?.secret !== daemon.secret
  if (isReplaced) return makeLink(context, role)
  if (!response.ok) throw Refusal.from(reply, response.status)
  const { expires_in_seconds } = reply as { expires_in_seconds: number }
  return { link: `${daemon.url}/#link=${secret}`, expires_in_seconds }
}

function notServing(): Refusal {
  return new Refusal('unavailable', 'No server runs here, so there is no dashboard', {
    next: 'Start it: leasehold up',
  })
}
