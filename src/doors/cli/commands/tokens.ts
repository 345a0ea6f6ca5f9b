import type { Command } from 'commander'
import pc from 'picocolors'
import * as tokens from '../../../operations/tokens.ts'
import { sha256 } from '../../../machine/digest.ts'
import type { Enter } from './operations.ts'
import { print } from '../show/show.ts'
import { durationOf } from '../values.ts'

interface Asked {
  role: string
  ttl?: string
  user?: string[]
  project?: string[]
}

/**
 * `token create` is a command of its own: the secret is made here and only its hash is sent, so
 * that no reply, log or store ever holds it. `--agent` names whom the token is for.
 */
export function addTokens(token: Command, enter: Enter): void {
  token
    .command('create')
    .description('Make a token. Its secret is shown once, and kept nowhere.')
    .requiredOption('--role <role>', 'viewer (reads), agent (works) or admin (may do all)')
    .option('--ttl <duration>', 'how long it counts (default: until revoked)')
    .option('--user <name...>', 'bind it to these users: it sees and touches nothing of others')
    .option('--project <name...>', 'bind it to these projects')
    .action(async ({ role, ttl, user, project }: Asked, self: Command) => {
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
        ...(ttl !== undefined && { ttl_seconds: durationOf(ttl, '--ttl') }),
      }
      const caller = { ...context.caller, admin: true }
      const made = await context.call(tokens.create, input, { caller })
      if (context.json) print(JSON.stringify({ ...made, token: secret }))
      else
        print(`${pc.bold(secret)}\n${pc.dim(`id ${made.id}, role ${made.role}; shown only once`)}`)
    })
}
