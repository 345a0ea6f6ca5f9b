import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { homeFolder } from './login.ts'
import { mainCheckout } from './place.ts'

/**
 * Whether Codex would run our hooks. It runs no hook that a person has not trusted on its own
 * screen, and `codex exec` does not say so: until then nothing guards what it writes.
 */
export type CodexTrust = 'trusted' | 'untrusted' | 'unknown'

export const UNTRUSTED =
  'Codex runs no hook of Leasehold here: nobody has trusted them, so its edits are not guarded'

/** The way out, for a person. */
export const TRUST_NEXT =
  'Start codex in this folder, say that you trust it, type /hooks, and trust those of leasehold. ' +
  'Do that again whenever leasehold init has changed .codex/hooks.json; codex exec never asks.'

/** What Codex itself lists; only what we need of it. */
interface ListedHook {
  command?: string | null
  enabled?: boolean
  trustStatus?: string
}

interface Reply {
  id?: number
  result?: { data?: { hooks?: ListedHook[] }[] }
}

/** A program of the system, where it has it; no package brings it. */
const [CODEX] = ['codex'] as const
const LOOK_MS = 15_000
const HOOKS = '.codex/hooks.json'
const OURS = /\bleasehold hook codex\b/

/** Asks Codex itself, which takes a second. `unknown` where it is not installed or does not say. */
export function codexTrust(root: string, env: NodeJS.ProcessEnv): Promise<CodexTrust> {
  const codex = spawn(CODEX, ['app-server'], {
    cwd: root,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const say = (message: object) => codex.stdin.write(`${JSON.stringify(message)}\n`)
  const answer = new Promise<CodexTrust>((tell) => {
    const late = setTimeout(() => tell('unknown'), LOOK_MS)
    const end = (trust: CodexTrust) => {
      clearTimeout(late)
      tell(trust)
    }
    codex.on('error', () => end('unknown'))
    codex.on('exit', () => end('unknown'))
    codex.stdin.on('error', () => undefined)
    let text = ''
    codex.stdout.on('data', (chunk: Buffer) => {
      const lines = (text + chunk.toString()).split('\n')
      text = lines.pop()!
      for (const line of lines) {
        const { id, result }: Reply = attempt(() => JSON.parse(line) as Reply, {})
        if (id === 1) {
          say({ method: 'initialized' })
          say({ id: 2, method: 'hooks/list', params: { cwds: [root] } })
        } else if (id === 2) end(trustIn(result?.data?.[0]?.hooks))
      }
    })
  })
  say({ id: 1, method: 'initialize', params: { clientInfo: { name: 'leasehold', version: '1' } } })
  return answer.finally(() => codex.kill('SIGKILL'))
}

/** In a folder that is not trusted Codex lists none. One that is too old does not say. */
function trustIn(hooks: ListedHook[] | undefined): CodexTrust {
  if (!hooks) return 'unknown'
  const ours = hooks.filter(({ command }) => OURS.test(command ?? ''))
  const isRun = ({ trustStatus, enabled }: ListedHook) =>
    enabled !== false && (trustStatus === 'trusted' || trustStatus === 'managed')
  return ours.length > 0 && ours.every(isRun) ? 'trusted' : 'untrusted'
}

/**
 * The same at a glance, for where there is no second to lose: whether a person has ever trusted the
 * hook in this checkout that guards edits. True where there is none of ours.
 */
export function isEverTrusted(cwd: string, env: NodeJS.ProcessEnv): boolean {
  const path = hooksFile(cwd)
  if (path === undefined) return true
  const home = env['CODEX_HOME'] || join(homeFolder(env, '/'), '.codex')
  const config = attempt(() => readFileSync(join(home, 'config.toml'), 'utf8'), '')
  return config.includes(`"${path}:pre_tool_use:`)
}

function hooksFile(cwd: string): string | undefined {
  for (let here = resolve(cwd); ; here = dirname(here)) {
    // Of a worktree Codex reads those of the main checkout.
    const path = join(mainCheckout(here) ?? here, HOOKS)
    if (existsSync(path) && OURS.test(readFileSync(path, 'utf8'))) return path
    if (dirname(here) === here) return undefined
  }
}
