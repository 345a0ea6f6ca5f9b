import type { Command } from 'commander'
import pc from 'picocolors'
import * as tokens from '../../../operations/tokens.ts'
import { sha256 } from '../../../machine/digest.ts'
import type { Enter } from './operations.ts'
import { needsRole } from '../family.ts'
import { print } from '../show/show.ts'
import { durationOf } from '../values.ts'

interface Asked {
  role: string
  ttl?: string
  user?: string[]
  project?: string[]
  allUsers?: boolean
  allProjects?: boolean
}

/**
 * `token create` is a command of its own: the secret is made here and only its hash is sent, so
 * that no reply, log or store ever holds it. `--agent` names whom the token is for.
 */
export function addTokens(token: Command, enter: Enter): void {
  needsRole(token.command('create'), 'admin')
    .description('Create a token. Its secret is shown once and stored nowhere.')
    .requiredOption('--role <role>', 'viewer (reads), agent (works) or admin (may do everything)')
    .option('--ttl <duration>', 'how long the token is valid (default: until it is revoked)')
    .option('--user <name...>', 'bind the token to these users: it can see and change nothing else')
    .option('--project <name...>', 'bind the token to these projects')
    .option('--all-users', 'with --project: leave open what is only of users (locks, notes)')
    .option('--all-projects', 'with --user: leave open what is only of projects (notes, paths)')
    .action(async ({ role, ttl, user, project, ...open }: Asked, self: Command) => {
      const options = self.optsWithGlobals<{ agent?: string }>()
      const context = enter({ ...options, agent: undefined })
      const { randomBytes } = process.getBuiltinModule('node:crypto')
      const secret = `lh_${randomBytes(32).toString('base64url')}`
      const input = {
        secret_hash: sha256(secret),
        role,
        for_agent: options.agent ?? null,
        users: user ?? null,
        projects: project ?? null,
        all_users: open.allUsers ?? false,
        all_projects: open.allProjects ?? false,
        ...(ttl !== undefined && { ttl_seconds: durationOf(ttl, '--ttl') }),
      }
      const caller = { ...context.caller, admin: true }
      const made = await context.call(tokens.create, input, { caller })
      if (context.json) print(JSON.stringify({ ...made, token: secret }))
      else
        print(`${pc.bold(secret)}\n${pc.dim(`id ${made.id}, role ${made.role}; shown only once`)}`)
    })
}
