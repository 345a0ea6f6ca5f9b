import { type Command, Help } from 'commander'

const words = (text: string) => text.split(/\s+/)

/** What people type every day, and what who runs agents for others needs besides. */
const EVERY_DAY = words(`init up down demo task lock reserve run memory agent land status
  doctor`)
const PLATFORM = words(`queue runs dispatch worktree token config db stats event serve`)

/** What programs give, or what is said another way: it works, and completions know it. */
const PLUMBING = new Set(words(`hook mcp completion help stuck alert heartbeat waiters guard`))
/** Programs that may send a command twice give it; a person does not. */
const UNSEEN_FLAGS = new Set(['--request-id'])

const plain = new Help()

/** The help of a command shows what people type. */
export const SHOWN = {
  visibleCommands: (command: Command) =>
    plain.visibleCommands(command).filter((each) => !PLUMBING.has(each.name())),
  visibleOptions: (command: Command) =>
    plain.visibleOptions(command).filter(({ long }) => !UNSEEN_FLAGS.has(long ?? '')),
}

/** Puts the commands under their headings, in the order in which people come to them. */
export function arrange(root: Command): void {
  for (const command of root.commands) {
    const isDaily = EVERY_DAY.includes(command.name())
    command.helpGroup(isDaily ? 'Every day:' : 'Platform:')
  }
  const place = new Map([...EVERY_DAY, ...PLATFORM].map((name, i) => [name, i]))
  const at = (command: Command) => place.get(command.name()) ?? place.size
  ;(root.commands as Command[]).sort((a, b) => at(a) - at(b))
}
