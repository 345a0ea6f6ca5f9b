import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import type { ProcessRef } from '../core/rows.ts'
import { census, controlGroup, environmentOf, isOver, lineage, lookAt } from './proc.ts'
import { SERVER } from './place.ts'
import { host, processFact, RUNNER, seat } from './process.ts'
import { hasRuns } from './run_output.ts'
import { sessionFiles } from './sessions.ts'

/*
 * Who started a process can be seen as long as its parents live. One whose parent has ended is a
 * child of the system, like a service or a login: it is still that of the agent which started it.
 */

/** What starts programs for a whole login or machine: a process above one belongs to no agent. */
export const SYSTEM = new Set([
  ...['systemd', 'init', 'tini', 'dumb-init', 'launchd', 'containerd-shim'],
  ...['sshd', 'login', 'cron', 'crond', 'atd', 'screen', 'tmux: server'],
])

/** An agent of a state folder, and a process of its own. */
export interface Starter {
  agents: string[]
  process: ProcessRef
  isRun?: boolean
}

const refOf = (pid: number, start: number): ProcessRef => ({ host, seat, pid, start })

/** The command of the run that we are part of: below the runner which a dispatcher has started. */
export function runAbove(folder: string): Starter | undefined {
  let below: { pid: number; start: number } | undefined
  for (const { pid, stat } of lineage(process.pid)) {
    if (typeof stat === 'string') return undefined
    if (below && isRunnerOf(folder, pid)) return commandOf(below)
    below = { pid, start: stat.start }
  }
  return undefined
}

function isRunnerOf(folder: string, pid: number): boolean {
  const run = environmentOf(pid)?.[RUNNER]
  if (run === undefined) return false
  const state = dirname(dirname(run))
  return attempt(() => realpathSync(state) === realpathSync(folder), false)
}

/** What a runner starts has the agent of its run; what it starts for a worktree has none. */
function commandOf({ pid, start }: { pid: number; start: number }): Starter | undefined {
  const { LEASEHOLD_RUN: run, LEASEHOLD_AGENT: agent } = environmentOf(pid) ?? {}
  return run && agent ? { agents: [agent], process: refOf(pid, start), isRun: true } : undefined
}

/** What the run that we are part of was given: `LEASEHOLD_TOKEN` and the like. */
export function runVariables(folder: string): Record<string, string | undefined> {
  if (!hasRuns(folder)) return {}
  const [alone, ...others] = startersHere(folder)
  const run = runAbove(folder) ?? (alone?.isRun && others.length === 0 ? alone : undefined)
  const given = (run && environmentOf(run.process.pid)) ?? {}
  const isOurs = (name: string) => /^LEASEHOLD_(?:TOKEN|URL|RUN|AGENT|TASK|LOCK|FENCE)$/.test(name)
  return Object.fromEntries(Object.entries(given).filter(([name]) => isOurs(name)))
}

interface Root {
  pid: number
  start: number
  session: number
}

/**
 * The topmost process that we descend from, where nobody can be said to have started that: its
 * parent is the system. Undefined where a person's terminal is in between, a server or a runner of
 * ours, or where what we descend from came from outside (`docker exec`).
 */
function rootHere(folder: string): Root | undefined {
  let top: (Root & { isPersons: boolean }) | undefined
  const server = serverOf(folder)
  for (const { pid, stat } of lineage(process.pid)) {
    if (typeof stat === 'string') return undefined
    const isServer = pid === server?.pid && stat.start === server.start
    if (isServer || (pid !== 1 && isRunnerOf(folder, pid))) return undefined
    const isLost = top && stat.session !== top.session && top.session !== top.pid
    if (top && (isLost || pid === 1 || SYSTEM.has(stat.name))) {
      return isLost || !top.isPersons ? top : undefined
    }
    const { start, session, tty } = stat
    // The shell of a terminal leads a session, and has that terminal.
    const isPersons = (top?.isPersons ?? false) || (tty !== 0 && session === pid)
    top = { pid, start, session, isPersons }
  }
  return undefined
}

/** What is started by a server is what a person has approved. */
const serverOf = (folder: string) =>
  attempt(
    () => JSON.parse(readFileSync(join(folder, SERVER), 'utf8')) as { pid: number; start: number },
    undefined,
  )

/** The agents of `folder` that may have started us and let us go: while they live, they have. */
export function startersHere(folder: string): Starter[] {
  const root = rootHere(folder)
  if (!root) return []
  const group = controlGroup(process.pid)
  return [...notedIn(folder), ...commandsIn(folder)].filter(({ process: { pid, start } }) => {
    const stat = lookAt(pid)
    if (typeof stat === 'string' || start > root.start) return false
    for (const each of lineage(pid)) if (each.pid === root.pid) return false
    return stat.session === root.session || controlGroup(pid) === group
  })
}

function notedIn(folder: string): Starter[] {
  return sessionFiles(folder)
    .filter(({ ref }) => processFact(ref) === 'alive')
    .map(({ file, ref }) => ({ agents: file.agents, process: ref }))
}

function commandsIn(folder: string): Starter[] {
  const { found } = census()
  const living = found.filter((each) => !isOver(each))
  const runners = new Set(living.filter(({ pid }) => isRunnerOf(folder, pid)).map(({ pid }) => pid))
  return living.filter(({ parent }) => runners.has(parent)).flatMap((each) => commandOf(each) ?? [])
}

/** The agents outside of our pid namespace, where one of them has put us into it. */
export function outside(folder: string): Starter[] {
  const group = controlGroup('self')
  return sessionFiles(folder)
    .filter(({ ref, file }) => ref.seat !== seat && group !== undefined && file.group === group)
    .map(({ ref, file }) => ({ agents: file.agents, process: ref }))
}
