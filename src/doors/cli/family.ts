import type { Command } from 'commander'
import { admits } from '../../core/caller.ts'
import { word } from '../../core/quote.ts'
import { Refusal } from '../../core/refusal.ts'
import { environmentOf } from '../../machine/proc.ts'
import type { Family } from '../../machine/family.ts'
import type { Operation } from '../../operations/operation.ts'
import { io } from '../io.ts'

/**
 * Whether a command speaks for an agent that hooks know, and so for that one only. In an editor
 * that has several conversations a person types too, on a terminal.
 */
export const isBound = ({ agents, alone }: Family) =>
  agents.length > 0 && (alone || !io().stdin.isTTY)

/** Refuses (`forbidden`) what only a person may say: to be another agent. */
export function refuseStranger(family: Family, said: string): void {
  const { agents, process } = family
  const mine = agents.filter((each) => admits(each, said))
  // Of several that are no one process's, nobody can tell which it is.
  if (!isBound(family) || mine.length === agents.length || (process && mine.length > 0)) return
  const own = word(agents.at(-1)!)
  throw new Refusal('forbidden', `This command is ${own}'s, and cannot act as ${word(said)}`, {
    next: `Leave the agent out, or name a subagent: ${own}/NAME. For any other, ask your user.`,
    details: { agent: said },
  })
}

/** The holder of a token may do what the token may do, and may not use the files directly. */
export function refuseWithToken(env: NodeJS.ProcessEnv): void {
  if (!env['LEASEHOLD_TOKEN']) return
  throw new Refusal('forbidden', 'With LEASEHOLD_TOKEN set, the store is not used directly', {
    next: env['LEASEHOLD_RUN']
      ? 'Ask the server, by the commands that this token may use; the rest is for your user.'
      : 'Unset it to work on the store as the login that it belongs to.',
  })
}

/** Refuses (`forbidden`) what only a person or an admin's token may do. */
export function refuseAdmin(family: Family, what: string): void {
  if (!isBound(family)) return
  const own = word(family.agents.at(-1)!)
  throw new Refusal('forbidden', `${what} is for a person, and not for ${own} to do`, {
    next: 'Ask your user, who can do it in a terminal of their own.',
  })
}

/**
 * What agents may do too, besides operations that are not for admins. A command that is not here is
 * for people, a new one too. Of `reserve guard` and `db backup` a part is: they look themselves.
 */
const FOR_AGENTS: ReadonlySet<string> = new Set(
  `run, mcp, hook, doctor, status, demo, completion, init, serve, up,
  runs logs, reserve guard, worktree diff, worktree salvage, memory sync, db check, db backup,
  db migrate`.split(/,\s+/),
)

/** Commands that ask the server, which lets a token do what it may do, and the role they need. */
const roles = new WeakMap<Command, Operation['role']>()

export function needsRole(command: Command, role: Operation['role']): Command {
  roles.set(command, role)
  return command
}

/** Whether a command is for people alone: as this login, or with an admin's token. */
export function isForPeople(command: Command): boolean {
  if (roles.has(command)) return roles.get(command) === 'admin'
  return !FOR_AGENTS.has(nameOf(command)) || ['undo', 'link'].some((each) => command.opts()[each])
}

/** Refuses (`forbidden`) an agent that gives a command which is for people. */
export function refuseAgents(command: Command, env: NodeJS.ProcessEnv, family: Family): void {
  if (!roles.has(command)) refuseWithToken(env)
  refuseAdmin(family, nameOf(command))
}

/** `lock force-release`; where there is no verb, the noun. */
const nameOf = (command: Command) =>
  [command.parent, command].flatMap((each) => (each?.parent ? [each.name()] : [])).join(' ')

const TRUST = ['LEASEHOLD_TRUST_CONFIG', 'XDG_STATE_HOME', 'HOME']

/**
 * Refuses (`forbidden`) an agent that starts a server with other words about what may be started
 * than it was started with itself: where approvals are, and that none are needed.
 */
export function refuseOwnTrust(family: Family, env: NodeJS.ProcessEnv): void {
  if (!isBound(family)) return
  const given = (family.process && environmentOf(family.process.pid)) ?? {}
  const said = TRUST.find((name) => env[name] !== undefined && env[name] !== given[name])
  if (said !== undefined) refuseAdmin(family, `To set ${said} for a server`)
}
