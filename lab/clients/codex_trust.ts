import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Place } from './client.ts'

interface Reply {
  id?: number
  result?: { data?: { hooks?: { key: string; currentHash: string }[] }[] }
}

/** Writes what "Trust all" on Codex's own screen writes, for the hooks that Codex itself lists. */
export async function trustCodex(
  { repo, home }: Place,
  env: Record<string, string>,
): Promise<void> {
  const codex = spawn('timeout', ['30', 'codex', 'app-server'], {
    ...{ cwd: repo, env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const say = (message: object) => codex.stdin.write(`${JSON.stringify(message)}\n`)
  say({ id: 1, method: 'initialize', params: { clientInfo: { name: 'lab', version: '1' } } })
  for await (const line of createInterface(codex.stdout)) {
    const { id, result } = JSON.parse(line) as Reply
    if (id === 1) {
      say({ method: 'initialized' })
      say({ id: 2, method: 'hooks/list', params: { cwds: [repo] } })
    }
    if (id !== 2) continue
    const trusted = (result?.data?.[0]?.hooks ?? []).map(
      ({ key, currentHash }) =>
        `[hooks.state.${JSON.stringify(key)}]\ntrusted_hash = "${currentHash}"\n`,
    )
    appendFileSync(join(home, '.codex/config.toml'), trusted.join(''))
    break
  }
  codex.kill()
}
