/**
 * What an agent needs to work by the rules, in the words of Claude Code's permissions: our tools,
 * and the commands that AGENTS.md and the skill name. Not all of them: `leasehold run` starts any
 * program.
 */
export const OWN_TOOLS = [
  'mcp__leasehold',
  ...['task', 'reserve', 'lock', 'agent list', 'memory get', 'memory put', 'memory search'].map(
    (words) => `Bash(leasehold ${words}:*)`,
  ),
]
