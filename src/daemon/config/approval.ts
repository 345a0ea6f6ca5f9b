import { mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { planted } from '../../core/planted.ts'
import { sha256 } from '../../machine/digest.ts'
import { loginState } from '../../machine/place.ts'
import { writePrivate } from '../../machine/private_file.ts'
import type { FileConfig, LandConfig } from './schema.ts'

/**
 * `config.json` lies where agents may write, or where an archive was unpacked, and it names
 * programs. They count only as a person has approved them; what was approved is kept outside of the
 * checkout, by state folder.
 */

/** All in `config.json` that decides which program is started, and where. */
export interface Programs {
  agents: Record<string, unknown>
  projects: Record<string, { land?: LandConfig | undefined }>
  alert_command: unknown
}

const NONE: Programs = { agents: {}, projects: {}, alert_command: null }

export function programsIn({ agents, projects, alerts }: FileConfig): Programs {
  const started = Object.entries(projects).map(([name, { agent, path, land, worktrees }]) => {
    const { setup, teardown } = worktrees ?? {}
    // What is not set is not named: what was approved before stays approved.
    return [name, { agent, path, land, setup: setup ?? undefined, teardown: teardown ?? undefined }]
  })
  const plain = { agents, projects: Object.fromEntries(started), alert_command: alerts.command }
  // As it is kept, so that the two can be compared.
  return JSON.parse(JSON.stringify(plain)) as Programs
}

/** Set by the person who starts a server whose `config.json` only that person can write. */
export const isTrusted = (env: NodeJS.ProcessEnv) => env['LEASEHOLD_TRUST_CONFIG'] === 'yes'

const approvals = (env: NodeJS.ProcessEnv) => join(loginState(env), 'approved')

const fileFor = (folder: string) => `${sha256(realpathSync(resolve(folder))).slice(0, 32)}.json`

/** What a person has approved for this state folder so far. */
export function approvedFor(folder: string, env: NodeJS.ProcessEnv): Programs {
  try {
    const text = readFileSync(join(approvals(env), fileFor(folder)), 'utf8')
    return { ...NONE, ...(JSON.parse(text) as { programs: Programs }).programs }
  } catch {
    // Whatever cannot be read approves nothing.
    return NONE
  }
}

export function approve(folder: string, env: NodeJS.ProcessEnv, programs: Programs): void {
  const place = approvals(env)
  mkdirSync(place, { recursive: true, mode: 0o700 })
  const kept = { folder: realpathSync(resolve(folder)), programs }
  writePrivate(place, fileFor(folder), `${JSON.stringify(kept, null, 2)}\n`)
}

/**
 * A configuration without the agents, projects and alert command that are not as they were
 * approved, and the names of those. A project whose agent waits for approval waits too: it must not
 * be served by another program.
 */
export function withApproved(said: FileConfig, approved: Programs) {
  const wanted = programsIn(said)
  const isSame = (part: 'agents' | 'projects', name: string) =>
    planted('R50') || isDeepStrictEqual(wanted[part][name], approved[part][name])
  const keeps = (name: string) =>
    isSame('projects', name) && isSame('agents', said.projects[name]!.agent)
  const kept = <T>(all: Record<string, T>, test: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => test(name)))
  const agents = kept(said.agents, (name) => isSame('agents', name))
  const projects = kept(said.projects, keeps)
  const leftOut = (part: 'agents' | 'projects', left: object) =>
    Object.keys(said[part]).flatMap((name) => (name in left ? [] : [`${part}.${name}`]))
  const waiting = [...leftOut('agents', agents), ...leftOut('projects', projects)]
  let { alerts } = said
  if (!isDeepStrictEqual(wanted.alert_command, approved.alert_command)) {
    alerts = { ...alerts, command: null }
    waiting.push('alerts.command')
  }
  return { said: { ...said, agents, projects, alerts }, waiting }
}

/** One sentence for people, where something waits. */
export const waitingText = (waiting: string[]) =>
  `config.json names programs that nobody has approved: ${waiting.join(', ')}. ` +
  'They are not started. To look at them and approve them: leasehold config approve'
