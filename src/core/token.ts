import type { Token } from './schema/caller.ts'
import type { Task } from './schema/task.ts'
import type { Lease } from './schema/lock.ts'
import type { Caller } from './caller.ts'
import { missing, Refusal } from './refusal.ts'
import type { TokenScope } from './rows.ts'
import type { View } from './view.ts'

export interface CreateToken {
  hash: string
  role: Token['role']
  agent: string | null
  scope: TokenScope | null
  ttl_ms: number | null
}

/** Writes down who a secret stands for. The secret itself is never kept, only its hash. */
export function createToken(view: View, ask: CreateToken, caller: Caller): Token {
  if (ask.role === 'agent' && ask.agent === null) {
    throw new Refusal('invalid', 'A token of the role agent must name its agent', {
      next: {
        says: 'For example',
        operation: 'token.create',
        input: { role: 'agent', for_agent: 'builder-1' },
      },
    })
  }
  if (ask.role === 'admin' && ask.scope !== null) {
    throw new Refusal('invalid', 'A token of the role admin cannot be bound to users or projects', {
      next: 'Leave out users and projects, or make a token of the role agent or viewer.',
    })
  }
  if (view.get('token', ask.hash)) {
    // Also a revoked one: making it again would bring it back.
    throw new Refusal('conflict', 'A token with this secret exists already', {
      next: { says: 'Make a new secret', operation: 'token.create' },
    })
  }
  const { ttl_ms, ...said } = ask
  const token: Token = {
    ...said,
    ...freshToken(view, ask.hash, caller.agent),
    expires_at: ttl_ms === null ? null : new Date(view.wall + ttl_ms).toISOString(),
    expires_ms: ttl_ms === null ? null : view.now + ttl_ms,
  }
  view.put('token', token)
  view.record('token.created', caller, { token: token.id, role: token.role, for: token.agent })
  return token
}

const freshToken = (view: View, hash: string, created_by: string) => {
  return { hash, id: hash.slice(0, 12), created_by, created_at: view.at, revoked_at: null }
}

/** Makes a token worthless at once. Doing it twice is as good as once. */
export function revokeToken(view: View, id: string, caller: Caller): Token {
  for (const token of view.scan('tokens', '')) {
    if (token.id !== id) continue
    if (token.revoked_at !== null) return token
    // From now on it counts as one that has ended: retention finds it by that time.
    const expires_ms = Math.min(token.expires_ms ?? view.now, view.now)
    const revoked = { ...token, revoked_at: view.at, expires_ms }
    view.put('token', revoked)
    view.record('token.revoked', caller, { token: id })
    return revoked
  }
  return missing(`token ${id}`, 'token.list')
}

/**
 * A secret for the agent of one run, bound to the run's own task, user and project; it is gone when
 * the lease of that run ends.
 */
export function bindToken(view: View, lease: Lease, task: Task, hash: string): Lease {
  const bound = { ...lease, terms: { ...lease.terms!, token_hash: hash } }
  view.put('lease', bound)
  view.put('token', {
    ...freshToken(view, hash, 'leasehold'),
    role: 'agent',
    agent: lease.holder,
    scope: { users: [task.user ?? ''], projects: [task.project ?? ''], task: task.id },
    expires_at: null,
    expires_ms: null,
  })
  return bound
}

/** The token whose secret has this hash, if it still counts. */
export function validToken(view: View, hash: string): Token | undefined {
  const token = view.get('token', hash)
  if (!token || token.revoked_at !== null) return undefined
  return token.expires_ms === null || view.now < token.expires_ms ? token : undefined
}
