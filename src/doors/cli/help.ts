/** What `--help` teaches beyond a list of flags: the ideas, and lines that can be typed. */

export const PROGRAM = {
  about: 'Lets many coding agents share tasks and files without stepping on each other.',
  examples: `
Start here:
  leasehold task add "Fix the login test" --priority 7
  leasehold task claim --agent builder-1          the next ready task, for one agent only
  leasehold task done 1 --agent builder-1
  leasehold run --lock build -- make              hold a lock while a command runs
  leasehold lock acquire db --ttl 10m --wait 30s

Every grant has a fence, a number that only rises. Send it with what you write under the lease
(--fence, or LEASEHOLD_FENCE under run): if the lease is no longer yours, the write is refused.

State lives in LEASEHOLD_DIR, else the nearest .leasehold/ upward, else ~/.leasehold.
Exit codes: 0 yes, 2 bad input, 3 not found, 4 not allowed, 5 held or stale, 75 try later,
76 store damaged.`,
}

export const NOUNS: Record<string, { about: string; examples: string }> = {
  lock: {
    about: 'Take, keep and give back locks.',
    examples: `
A lock is any name. One agent at a time holds it, until it is released or its lease expires.

Examples:
  leasehold lock acquire build --agent a1 --ttl 5m
  leasehold lock acquire db cache --wait 30s      both or neither
  leasehold lock renew build --fence 7
  leasehold lock handoff task:42 --fence 7 --to reviewer
  leasehold lock release build`,
  },
  task: {
    about: 'Add, claim, move and finish tasks.',
    examples: `
todo → in_progress → review → done; also failed and cancelled. Claiming takes the task's lock;
every status but in_progress gives it back. If an agent dies, its task returns to todo.

Examples:
  leasehold task add "Write the parser" --depends-on 3 --label rust
  leasehold task claim --label rust
  leasehold task status 42 in_progress            claims this one
  leasehold task edit 42 --version 3 --title "Write the new parser"
  leasehold task explain 42                       why is it not running?`,
  },
  agent: {
    about: 'See who works here.',
    examples: `
Examples:
  leasehold agent list
  leasehold agent heartbeat --agent builder-1     renews all its leases at once`,
  },
  token: {
    about: 'Say who may come in through HTTP and MCP.',
    examples: `
Examples:
  leasehold token create --role agent --agent builder-1
  leasehold token list
  leasehold token revoke 3f9a1c2b4d5e`,
  },
  db: {
    about: 'Look after the store.',
    examples: `
Examples:
  leasehold db check                              integrity, and the chain of events
  leasehold db backup before-upgrade.db
  leasehold db restore before-upgrade.db          fences rise, so nothing old is accepted`,
  },
}
