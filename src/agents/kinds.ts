/** The agents whose hooks we answer, by the first part of their ids. */
export const KINDS = ['claude', 'codex', 'cursor', 'gemini', 'opencode', 'copilot'] as const
export type AgentKind = (typeof KINDS)[number]
