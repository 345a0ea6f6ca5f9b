import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { Claim } from '../../core/tasks/claim.ts'
import { Refusal } from '../../core/refusal.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import { hostIn } from '../../machine/host.ts'
import { RUNNER } from '../../machine/process.ts'
import type { Config } from '../config/config.ts'
import { planLaunch, planOf, withoutStore } from './launch.ts'
import { placeIn, startProgram } from '../program.ts'
import type { RunSpec } from '../runner/spec.ts'
import { runFolder } from '../../machine/run_output.ts'

const PROMPT = 'prompt.txt'
const SLACK_MS = 15_000

interface RunnerAsk {
  claim: Claim
  /** All of the task's body. */
  prompt: string
  config: Config
  place: Place
  env: NodeJS.ProcessEnv
  url: string
  /** The secret of the agent's token. */
  secret: string
}

/**
 * Starts the runner of a claimed run, apart from us: it outlives this process. Throws when the run
 * cannot be started at all; `unavailable` when nothing can be started just now.
 */
export function startRunner(ask: RunnerAsk): ChildProcess {
  const spec = specOf(ask)
  const { env } = ask
  const more = { [RUNNER]: spec.folder }
  const isMarked = spec.worktree !== null
  const runner = startProgram({ name: 'runner', spec, env, more, isMarked }, 'ignore')
  // No process, or no descriptor left for its pipe: no fault of the run.
  if (runner.pid === undefined) throw new Refusal('unavailable', 'No process could be started')
  runner.unref()
  return runner
}

function specOf({ claim, prompt, config, place, env, url, secret }: RunnerAsk): RunSpec {
  const { task, lease, run } = claim
  const { cwd, agent } = planOf(config, task)
  const { ttl_seconds, grace_seconds, log_bytes_max } = config.runs
  const runs = runFolder(folderOf(place), run.id)
  const leasehold = {
    LEASEHOLD_TASK: task.id,
    LEASEHOLD_RUN: run.id,
    LEASEHOLD_LOCK: lease.name,
    LEASEHOLD_FENCE: String(lease.fence),
    LEASEHOLD_AGENT: run.agent,
    LEASEHOLD_URL: url,
    LEASEHOLD_TOKEN: secret,
    ...lentVariables(lease.terms?.lent),
  }
  const prompt_path = join(runs, PROMPT)
  const launch = planLaunch({ agent, cwd, prompt, prompt_path, ours: env, leasehold })
  const seconds = agent.time_limit_seconds
  const limits = [seconds === null ? null : seconds * 1000, leftOf(claim, config)]
  return {
    run_id: run.id,
    task_id: task.id,
    fence: lease.fence,
    agent: run.agent,
    lock: lease.name,
    user: task.user,
    project: task.project,
    title: task.title,
    ttl_ms: ttl_seconds * 1000,
    grace_ms: grace_seconds * 1000,
    folder: runs,
    ...launch,
    env: withoutStore(launch.env, place.url, env['PGPASSWORD']),
    prompt,
    time_limit_ms: limits.reduce((a, b) => (a === null ? b : b === null ? a : Math.min(a, b))),
    silence_ms: agent.silence_seconds === null ? null : agent.silence_seconds * 1000,
    log_bytes_max,
    place: placeIn(place),
    worktree: treeOf(claim, config, hostIn(folderOf(place))),
    brief: agent.brief,
    commits: agent.commit,
    check: config.projects[task.project ?? '']?.land?.check ?? null,
  }
}

/** The worktree that a run of this project gets. */
function treeOf(
  { task, lease, run }: Claim,
  { projects }: Config,
  host: string,
): RunSpec['worktree'] {
  const project = task.project ?? ''
  const { worktrees: rules = null, path: folder = '', land } = projects[project] ?? {}
  const ids = { run_id: run.id, task_id: task.id, fence: lease.fence, project, host }
  return rules && { ...ids, folder, rules, onto: land?.onto ?? null }
}

/** `LEASEHOLD_RESOURCE_PORTS=5100` */
const lentVariables = (lent: Record<string, string> = {}) =>
  Object.fromEntries(
    Object.entries(lent).map(([name, value]) => [
      `LEASEHOLD_RESOURCE_${name.toUpperCase()}`,
      value,
    ]),
  )

/** How long the claim may be renewed: the task's own limit, or that of a busy user. */
function leftOf({ lease }: Claim, config: Config): number | null {
  const { terms } = lease
  return terms?.until_ms ? terms.until_ms - terms.since_ms - slackOf(config) : null
}

/** What a runner needs beyond a run's time: to begin, to stop the command, and to tell. */
export const slackOf = ({ runs }: Config) => runs.grace_seconds * 1000 + SLACK_MS
