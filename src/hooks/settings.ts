import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { RESERVATION_TTL_MS, TTL_MS_MAX, TTL_MS_MIN } from '../core/bounds.ts'
import { MODES, type Mode } from '../core/paths/touch.ts'
import { statOf } from '../machine/file_system.ts'
import { CONFIG_FILE } from '../machine/place.ts'
import { isTracked } from '../machine/privacy.ts'
import type { StateStanding } from '../machine/set_up.ts'

export interface HookSettings {
  mode: Mode | 'off'
  ttl_seconds: number
  /** What becomes of an edit that nobody can be asked about. */
  unreachable: 'open' | 'closed'
  /** What becomes of a command that discards what others have not committed. */
  discard: 'save' | 'refuse'
  /** What in the file or the environment is not understood, and what is done instead. */
  problems: string[]
}

/**
 * The section `hooks` of `config.json`, and the environment above it. Checked here by hand: the
 * schema that the daemon checks it with takes longer to load than a hook may take.
 */
export function readSettings(
  folder: string,
  env: NodeJS.ProcessEnv,
  standing: StateStanding,
): HookSettings {
  const problems: string[] = []
  const said = trusted(folder, sectionIn(folder, problems), problems)
  const asked = env['LEASEHOLD_HOOKS'] || said['mode']
  const mode = oneOf(asked, [...MODES, 'off'] as const, 'hooks.mode', problems) ?? 'auto'
  const unreachable = oneOf(
    said['unreachable'] ?? (standing.lost === undefined ? undefined : standing.unreachable),
    ['open', 'closed'] as const,
    'hooks.unreachable',
    problems,
  )
  return {
    mode,
    ttl_seconds: ttlIn(said['ttl_seconds'], problems),
    // In strict mode every edit is reserved first, so one that cannot be checked is refused; and
    // who had `init` set a checkout up does not want it unguarded.
    discard:
      oneOf(said['discard'], ['save', 'refuse'] as const, 'hooks.discard', problems) ?? 'save',
    unreachable: unreachable ?? (mode === 'strict' || standing.isSetUp ? 'closed' : 'open'),
    problems,
  }
}

function sectionIn(folder: string, problems: string[]): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync(join(folder, CONFIG_FILE), 'utf8')
  } catch {
    return {}
  }
  // Most files say nothing about hooks: then there is nothing to read.
  if (!text.includes('"hooks"')) return {}
  try {
    const { hooks } = JSON.parse(text.replace(/^\uFEFF/, '')) as { hooks?: unknown }
    return typeof hooks === 'object' && hooks !== null ? (hooks as Record<string, unknown>) : {}
  } catch {
    problems.push(`${CONFIG_FILE} is not JSON: hooks work as if it said nothing`)
    return {}
  }
}

/** What lets more pass than the default. */
const LENIENT: Record<string, unknown[]> = { mode: ['off', 'warn'], unreachable: ['open'] }

/** What came with the repository, or from another login, does not switch a guard off. */
function trusted(
  folder: string,
  said: Record<string, unknown>,
  problems: string[],
): Record<string, unknown> {
  const lenient = Object.keys(LENIENT).filter((key) => LENIENT[key]!.includes(said[key]))
  if (lenient.length === 0) return said
  const uid = process.getuid?.()
  const isOthers = [folder, join(folder, CONFIG_FILE)].some((path) => statOf(path)?.uid !== uid)
  if (!isOthers && !attempt(() => isTracked(folder), true)) return said
  const why = isOthers ? 'another login owns' : 'git tracks'
  problems.push(
    `${CONFIG_FILE} is in a folder that ${why}: hooks.${lenient.join(', hooks.')} ${NOT}`,
  )
  return { ...said, ...Object.fromEntries(lenient.map((key) => [key, undefined])) }
}

const NOT = 'is not obeyed'

function oneOf<T extends string>(
  value: unknown,
  known: readonly T[],
  name: string,
  problems: string[],
): T | undefined {
  if (value === undefined) return undefined
  if (known.includes(value as T)) return value as T
  problems.push(`${name} is none of ${known.join(', ')}: the default is used`)
  return undefined
}

function ttlIn(value: unknown, problems: string[]): number {
  const usual = RESERVATION_TTL_MS / 1000
  if (value === undefined) return usual
  const ms = Number(value) * 1000
  if (typeof value === 'number' && ms >= TTL_MS_MIN && ms <= TTL_MS_MAX) return value
  problems.push(`hooks.ttl_seconds is not a number from 1 to 86400: ${usual} is used`)
  return usual
}
