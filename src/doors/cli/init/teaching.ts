/** What agents read: the short rules that are always in sight, and the skill behind them. */

export const RULES = `## Working with others here: Leasehold

Several agents may work in this checkout at once. Leasehold keeps them apart, and its hooks refuse
what would collide. Use its tools (MCP server \`leasehold\`) or the command of the same name.

- **Claim before you work**: \`claim_task\` (\`leasehold task claim\`). Then it is yours alone.
- **Reserve before you edit**: \`reserve_paths\` (\`leasehold reserve add 'src/api/**'\`).
- **A refusal is an answer**: it names who holds the thing, until when, and what to do \`next\`. Do
  that. Never work around it, and never take a lock by force.
- **Hand off** instead of dropping: \`hand_off_lock\` gives the task to the next agent.
- **Remember for others**: \`memory_search\` before you decide, \`memory_put\` what you learned.
- **Give back** when you finish: \`update_task_status\` to \`review\` or \`done\`, and
  \`release_paths\`.`

export const SKILL = `---
name: leasehold
description: >-
  How to work beside other agents in this repository: claim a task before working on it, reserve
  files before editing them, act on refusals, hand off, and share what you learn. Use it when you
  start work here, when an edit or a commit is refused, or when somebody holds what you need.
---

# Working beside other agents

Leasehold decides who may do what right now. Its answers come from one store that all agents of
this repository share, so they hold however many of you there are.

Every step below has an MCP tool (server \`leasehold\`) and a command that does the same.

## 1. Claim before you work

\`claim_task\` without an id gives you the next ready task; with an id, that one.

\`\`\`sh
leasehold task list --ready
leasehold task claim              # the next ready task; or: leasehold task claim 42
\`\`\`

The answer has a **fence**, a number. Tools remember it; on the command line pass \`--fence N\` with
what you write under the task. If nothing is ready, say so and stop: do not take another's task.

## 2. Reserve before you edit

\`\`\`sh
leasehold reserve add 'src/api/**' README.md --reason "task 42"
leasehold reserve check src/api/login.ts        # 0: free or mine, 5: held
\`\`\`

The tool is \`reserve_paths\`. Several globs are taken all or nothing. Reserve what you will change,
not the whole tree. If you forget, the hook reserves a file at your first edit of it, if it is free.

## 3. Heed refusals

A refusal says what happened, why, and what to do \`next\`:

| code | it means | do |
|---|---|---|
| \`held\` | another agent has it, until the time given | other work first; then ask again |
| \`fence_stale\` | another has it by now | stop writing, look at the task |
| \`lease_expired\` | your lease is over | claim or reserve again, then go on |
| \`conflict\` | somebody changed it since you read it | read it again, then change that |
| \`illegal_move\` | not from this status | \`explain\` says what is missing |

Do not edit the file by another route (\`sed\`, a copy, a script), do not use \`--force\` or
\`--no-verify\`, and do not retry in a loop. \`explain\` (\`leasehold task explain 42\`) tells why
something waits.

## 4. Hand off

When another agent is to go on (plan → implement → verify), pass the task with its lock. Nobody can
step in between:

\`\`\`sh
leasehold lock handoff task:42 --fence N --to reviewer
\`\`\`

The tool is \`hand_off_lock\`.

## 5. Share what you learn

Look before you decide (\`memory_search\`, or \`leasehold memory search "migrations"\`), and leave
what the next agent will need (\`memory_put\`). If the answer reports a conflict, two of you
disagree: read both, then resolve it.

## 6. Give back

\`\`\`sh
leasehold task status 42 review   # or: leasehold task done 42
leasehold reserve release
\`\`\`

The tools are \`update_task_status\` and \`release_paths\`. Every status but \`in_progress\` gives
the task's lock back. If you cannot finish, set it to \`todo\` and say what is left.
`
