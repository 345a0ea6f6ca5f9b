import { join } from 'node:path'
import { hookPart } from './hook_settings.ts'
import { type InitPart, textPart } from './part.ts'
import { serverFor, serverPart } from './servers.ts'

const CLINE = ['PreToolUse', 'PostToolUse', 'TaskStart', 'TaskResume', 'TaskCancel', 'TaskComplete']

/** What init once wrote for Windsurf, Cline and Kiro: undo still takes it out. */
export function retiredParts(root: string): InitPart[] {
  const at = (path: string) => ({ path: join(root, path), why: 'no longer set up' })
  const fileOfOurs = (path: string) =>
    textPart({
      ...at(path),
      put: (before) => before,
      take: (now) => (now.includes('leasehold hook ') ? undefined : now),
    })
  const servers = at('.kiro/settings/mcp.json')
  return [
    hookPart({ ...at('.windsurf/hooks.json'), shape: 'plain', root: {}, events: [] }),
    ...CLINE.map((event) => fileOfOurs(`.clinerules/hooks/${event}`)),
    fileOfOurs('.kiro/hooks/leasehold.json'),
    serverPart(servers.path, servers.why, serverFor(false), 'mcpServers'),
  ]
}
