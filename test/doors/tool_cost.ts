import { fileURLToPath } from 'node:url'
import { toolsIn } from '../../src/doors/mcp/tools.ts'

/** What `tools/list` costs every conversation, by the rule of thumb of four bytes to a token. */
export function toolCost(choice: 'core' | 'all'): { tools: number; bytes: number; tokens: number } {
  const tools = toolsIn(choice).map(({ listed }) => listed)
  const bytes = Buffer.byteLength(JSON.stringify({ tools }))
  return { tools: tools.length, bytes, tokens: Math.ceil(bytes / 4) }
}

// npx tsx test/doors/tool_cost.ts
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const choice of ['all', 'core'] as const) {
    const { tools, bytes, tokens } = toolCost(choice)
    process.stdout.write(`${choice}: ${tools} tools, ${bytes} bytes, ${tokens} tokens (bytes/4)\n`)
  }
}
