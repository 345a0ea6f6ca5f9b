/**
 * The commands that an agent needs to work by the rules: those that AGENTS.md and the skill name.
 * Not all that there are: `leasehold run` starts any program.
 */
export const COMMANDS = [
  ...['task', 'reserve', 'lock', 'agent list'],
  ...['memory get', 'memory put', 'memory search'],
].map((words) => `leasehold ${words}`)

/** What a run does to its own branch. The hooks of the repository see each commit. */
export const GIT = ['add', 'commit', 'rm', 'mv', 'merge'].map((verb) => `git ${verb}`)

/** Our tools and these commands, in the words of Claude Code's permissions. */
export const OWN_TOOLS = ['mcp__leasehold', ...COMMANDS.map((words) => `Bash(${words}:*)`)]

/** In those of Gemini CLI, which is told of our server where the server is named. */
export const GEMINI_TOOLS = COMMANDS.map((words) => `run_shell_command(${words})`)
