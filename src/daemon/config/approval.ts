import { chmodSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { attempt } from '../../core/attempt.ts'
import { planted } from '../../core/planted.ts'
import { sha256 } from '../../machine/digest.ts'
import { loginState } from '../../machine/place.ts'
import { readPrivate, writePrivate } from '../../machine/private_file.ts'
import { checkFile, type FileConfig } from './schema.ts'

/**
 * `config.json` lies where agents may write, or where an archive was unpacked, and it names
 * programs, addresses, secrets, branches and folders. They count only as a person has approved
 * them; what was approved is kept outside of the checkout, by state folder.
 */

/**
 * The settings that name none of these, and count at once; `*` is any name. A key that is not here
 * has to be approved, a new one too.
 */
const SAFE = `
  busy_timeout_ms slots.max pool.limit groups.*.limit users.*.limit users.*.weight
  per_user_serialization.enabled per_user_serialization.lock_timeout_seconds
  projects.*.limit projects.*.worktrees.retry projects.*.worktrees.salvage.bytes_max
  projects.*.worktrees.keep.days projects.*.worktrees.keep.bytes
  hooks.mode hooks.ttl_seconds hooks.unreachable hooks.discard reservations.scope
  runs.ttl_seconds runs.grace_seconds runs.log_bytes_max
  memory.strategies.* memory.embeddings.provider memory.embeddings.duplicates_at
  alerts.rules.lock_expired alerts.rules.agent_lost alerts.rules.deadlock
  alerts.rules.wait_seconds alerts.rules.queue_age_seconds alerts.rules.store_trouble_seconds
  alerts.rules.recover_seconds retention.days retention.*.days retention.*.max`
  .trim()
  .split(/\s+/)
  .map((each) => each.split('.'))

export function isSafe(path: readonly string[]): boolean {
  const fits = (part: string, i: number) => part === '*' || part === path[i]
  return SAFE.some((safe) => safe.length === path.length && safe.every(fits))
}

/** What was approved: a configuration, or the parts of one. */
export type Approved = Partial<Pick<FileConfig, 'projects' | 'agents'>> & object

/** A part of the file that counts as a whole: an entry, or what stands second. */
interface Part {
  section: string
  /** None where the section is one setting. */
  name: string | undefined
  value: unknown
}

/** Entries that mean something when they say nothing: a preset may be picked by its name. */
const NAMED = new Set(['agents', 'projects'])

/** All that has to be approved, by `section.name`. */
export function guardedIn({ agents, ...rest }: Approved): Map<string, Part> {
  const found = new Map<string, Part>()
  const add = (section: string, name: string | undefined, value: unknown) => {
    // As it is kept, so that the two can be compared.
    const plain: unknown = value && JSON.parse(JSON.stringify(value))
    const key = name === undefined ? section : `${section}.${name}`
    if (plain) found.set(key, { section, name, value: plain })
  }
  for (const [section, all] of Object.entries({ agents, ...rest })) {
    const isOne = typeof all !== 'object' || Array.isArray(all)
    if (isOne) add(section, undefined, unsafeOf(all, [section]))
    for (const [name, each] of isOne ? [] : Object.entries(all)) {
      add(section, name, unsafeOf(each, [section, name]) ?? (NAMED.has(section) ? {} : undefined))
    }
  }
  return found
}

/** The same without what is safe; what is not set is not named, and so stays approved. */
function unsafeOf(value: unknown, path: readonly string[]): unknown {
  if (value === null || value === undefined || isSafe(path)) return undefined
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) return value.length > 0 ? value : undefined
  const kept = Object.entries(value)
    .map(([name, each]) => [name, unsafeOf(each, [...path, name])] as const)
    .filter(([, each]) => each !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Set by the person who starts a server whose `config.json` only that person can write. */
export const isTrusted = (env: NodeJS.ProcessEnv) => env['LEASEHOLD_TRUST_CONFIG'] === 'yes'

const approvals = (env: NodeJS.ProcessEnv) => join(loginState(env), 'approved')

const fileFor = (folder: string) => `${sha256(realpathSync(resolve(folder))).slice(0, 32)}.json`

/**
 * What a person has approved for this state folder so far. A file or a folder that another login
 * may have written, or that cannot be read, approves nothing.
 */
export function approvedFor(folder: string, env: NodeJS.ProcessEnv): Approved {
  return attempt(() => {
    const place = approvals(env)
    const { uid, mode } = statSync(place)
    if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return {}
    const text = readPrivate(join(place, fileFor(folder))) ?? '{}'
    return (JSON.parse(text) as { said?: Approved }).said ?? {}
  }, {})
}

export function approve(folder: string, env: NodeJS.ProcessEnv, said: FileConfig): void {
  const place = approvals(env)
  mkdirSync(place, { recursive: true, mode: 0o700 })
  chmodSync(place, 0o700)
  const kept = { folder: realpathSync(resolve(folder)), said }
  writePrivate(place, fileFor(folder), `${JSON.stringify(kept, null, 2)}\n`)
}

/**
 * A configuration in which all that is not as it was approved is left out, and the names of that. A
 * project whose agent waits for approval waits too: it must not be served by another program.
 */
export function withApproved(said: FileConfig, approved: Approved) {
  const [wanted, granted] = [guardedIn(said), guardedIn(approved)]
  const isSame = (name: string) =>
    planted('R50') || isDeepStrictEqual(wanted.get(name)?.value, granted.get(name)?.value)
  const waits = new Map([...wanted].filter(([name]) => !isSame(name)))
  for (const [name, { agent, resources }] of Object.entries(said.projects)) {
    const uses = [`agents.${agent}`, ...resources.map((each) => `resources.${each}`)]
    const whole = wanted.get(`projects.${name}`)
    if (whole && !uses.every(isSame)) waits.set(`projects.${name}`, whole)
  }
  const usual = checkFile({}).said as Sections
  const left: Sections = { ...said }
  for (const { section, name } of waits.values()) {
    const instead = usual[section]
    left[section] = name === undefined ? instead : without(left[section], name, instead)
  }
  return { said: left as unknown as FileConfig, waiting: [...waits.keys()] }
}

type Sections = Record<string, unknown>

/** `section` without what it has by this name, or with what it has where the file says nothing. */
function without(section: unknown, name: string, usual: unknown): Sections {
  const { [name]: _, ...others } = section as Sections
  const { [name]: instead } = usual as Sections
  return { ...others, ...(instead !== undefined && { [name]: instead }) }
}

/** One sentence for people, where something waits. */
export const waitingText = (waiting: string[]) =>
  `config.json has settings that nobody has approved: ${waiting.join(', ')}. ` +
  'They have no effect. To look at them and approve them: leasehold config approve'
