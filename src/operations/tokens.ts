import type { Token } from '../core/schema/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { createToken, revokeToken } from '../core/token.ts'
import type { TokenScope } from '../core/rows.ts'
import * as answers from './answers/locks.ts'
import * as f from './fields.ts'
import { adminOperation, field, readOperation } from './operation.ts'
import { pageIn } from './page.ts'
import * as s from './schemas.ts'

/** A token as it may be shown: never with its secret, and its hash is nobody's business. */
function shown({ hash: _hash, expires_ms: _ms, ...token }: Token) {
  return token
}

export const create = adminOperation({
  name: 'token.create',
  refuses: ['invalid', 'conflict'],
  doc: 'Create a token. Its secret is shown once and stored nowhere.',
  input: {
    secret_hash: f.secretHash,
    role: f.role,
    for_agent: field(
      () => s.or(s.nullable(s.plain(256)), null),
      'The agent that the token stands for.',
    ),
    users: field(
      () => s.or(s.nullable(s.names()), null),
      'Bind the token to this user (repeatable).',
      '--user <name...>',
    ),
    projects: field(
      () => s.or(s.nullable(s.names()), null),
      'Bind the token to this project (repeatable).',
      '--project <name...>',
    ),
    all_users: field(
      s.flag,
      'Open to it what is only of users, of all: else that is shut for a token bound to projects.',
    ),
    all_projects: field(
      s.flag,
      'Open to it what is only of projects, of all: else that is shut for a token bound to users.',
    ),
    ttl_seconds: field(
      () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
      'How long the token is valid (default: until it is revoked).',
    ),
  },
  output: answers.token,
  decide: (view, { secret_hash, role, for_agent, ttl_seconds, ...said }, caller) => {
    const ttl_ms = ttl_seconds === undefined ? null : ttl_seconds * 1000
    const users = boundTo('users', said.users, said.all_users)
    const projects = boundTo('projects', said.projects, said.all_projects)
    const isBound = users !== null || projects !== null
    const scope = isBound ? { users, projects, task: null } : null
    const ask = { hash: secret_hash, role, agent: for_agent, scope, ttl_ms }
    return shown(createToken(view, ask, caller))
  },
})

function boundTo(
  what: 'users' | 'projects',
  names: string[] | null,
  all: boolean,
): TokenScope['users'] {
  if (!all || names === null) return all ? 'all' : names
  throw new Refusal(
    'invalid',
    `A token is bound to some ${what}, or all are open to it: not both`,
    {
      next: `Leave out the names, or all_${what}.`,
    },
  )
}

export const list = readOperation({
  name: 'token.list',
  role: 'admin',
  touches: 'whole',
  refuses: ['invalid'],
  doc: 'All tokens, without their secrets.',
  input: { ...f.page },
  output: answers.tokens,
  command: 'token list',
  decide: (view, page) => pageIn(view, ['tokens', ''], page, shown),
})

export const revoke = adminOperation({
  name: 'token.revoke',
  refuses: ['not_found'],
  doc: 'Revoke a token: it is refused from now on.',
  input: { id: field(() => s.plain(64), 'Id of the token, as shown by token list.') },
  output: answers.token,
  command: 'token revoke id',
  decide: (view, { id }, caller) => shown(revokeToken(view, id, caller)),
})
