import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import type { AgentKind } from '../../../agents/kinds.ts'
import { attempt } from '../../../core/attempt.ts'
import { homeFolder } from '../../../machine/login.ts'
import { isObject } from './json_text.ts'

const OURS = /^leasehold(?:@|$)/

const textIn = (...path: string[]) => attempt(() => readFileSync(join(...path), 'utf8'), '')

/**
 * Agents that have Leasehold as a plugin, by the settings of this login and of the checkout: their
 * hooks, tools and skill are there, and written once more they would run twice.
 */
export function agentsPluggedIn(root: string, env: NodeJS.ProcessEnv): AgentKind[] {
  const home = homeFolder(env, '/')
  const claude = [join(home, '.claude'), join(root, '.claude')].some((folder) =>
    ['settings.json', 'settings.local.json'].some((name) => isEnabled(textIn(folder, name))),
  )
  const tables = textIn(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml').split(/^\[/m)
  const codex = tables.some((table) => {
    return table.startsWith('plugins."leasehold@') && !/^enabled\s*=\s*false/m.test(table)
  })
  const gemini = existsSync(join(home, '.gemini/extensions/leasehold/gemini-extension.json'))
  return (Object.entries({ claude, codex, gemini }) as [AgentKind, boolean][]).flatMap(
    ([agent, isThere]) => (isThere ? [agent] : []),
  )
}

function isEnabled(settings: string): boolean {
  const said: unknown = parse(settings)
  const plugins = isObject(said) ? said['enabledPlugins'] : undefined
  return (
    isObject(plugins) &&
    Object.entries(plugins).some(([name, value]) => OURS.test(name) && value === true)
  )
}
