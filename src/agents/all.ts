import { claude } from './claude.ts'
import { codex } from './codex.ts'
import { copilot } from './copilot.ts'
import { cursor } from './cursor.ts'
import { gemini } from './gemini.ts'
import type { AgentKind } from './kinds.ts'
import { opencode } from './opencode.ts'
import type { AgentRecord } from './record.ts'

export const AGENTS: Record<AgentKind, AgentRecord> = {
  ...{ claude, codex, cursor },
  ...{ gemini, opencode, copilot },
}
