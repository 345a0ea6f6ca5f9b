import { admits } from '../../core/caller.ts'
import { word } from '../../core/quote.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Family } from '../../machine/family.ts'

/**
 * Whether a command speaks for an agent that hooks know, and so for that one only. In an editor
 * that has several conversations a person types too, on a terminal.
 */
export const isBound = ({ agents, alone }: Family) =>
  agents.length > 0 && (alone || !process.stdin.isTTY)

/** Refuses (`forbidden`) what only a person may say: to be another agent. */
export function refuseStranger(family: Family, said: string): void {
  const { agents } = family
  if (!isBound(family) || agents.some((each) => admits(each, said))) return
  const own = word(agents.at(-1)!)
  throw new Refusal('forbidden', `This command is ${own}'s, and cannot act as ${word(said)}`, {
    next: `Leave the agent out, or name a subagent: ${own}/NAME. For any other, ask your user.`,
    details: { agent: said },
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
