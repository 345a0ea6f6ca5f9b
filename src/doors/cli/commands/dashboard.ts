import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../../core/refusal.ts'
import { sha256 } from '../../../machine/digest.ts'
import { bearer } from '../../../reach/header_text.ts'
import { loginName } from '../../../machine/login.ts'
import { folderOf } from '../../../stores/open.ts'
import { host } from '../../../machine/process.ts'
import { findDaemon } from '../../../reach/server_file.ts'
import type { Enter } from './operations.ts'
import type { Context } from '../context.ts'
import { needsRole } from '../family.ts'
import { print } from '../show/show.ts'

const ASK_MS = 5_000

/** `leasehold dashboard`: a link that signs a browser in. */
export function addDashboard(root: Command, enter: Enter): void {
  needsRole(root.command('dashboard'), 'admin')
    .description('Print a link that opens the dashboard, signed in. It works once, for 10 minutes.')
    .option('--viewer', 'print a link that lets someone look but change nothing')
    .action(async ({ viewer }: { viewer?: boolean }, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const role = viewer ? 'viewer' : 'admin'
      const { link, expires_in_seconds } = await makeLink(context, role)
      if (context.json) print(JSON.stringify({ link, role, expires_in_seconds }))
      else print(`${pc.bold(link)}\n${pc.dim(linkHint(role))}`)
    })
}

export const linkHint = (role: 'viewer' | 'admin') =>
  `  Works once, within 10 minutes, as ${role}. Another one: leasehold dashboard`

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
