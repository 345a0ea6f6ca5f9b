import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkCounter, checkDurable, checkRequests, checkTasks } from './check_effects.ts'
import type { Final } from './check_effects.ts'
import {
  checkFences,
  checkGaps,
  checkRobbed,
  checkStaleWrites,
  checkTogether,
  type Violation,
} from './check_fences.ts'
import { checkWaits, waitsIn } from './check_waits.ts'
import { checkRuns, checkWitness, seenIn } from './check_witness.ts'
import { checkCodes } from './check_codes.ts'
import { type Call, type Fact, loadCalls, loadFacts } from './history.ts'
import { BIN, type Env, jsonOf } from './processes.ts'
import type { Scene } from './scene.ts'

const run = promisify(execFile)

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
type Json = any

/** Runs the command line to its end, and returns what it printed as JSON. */
export function command(env: Env, ...args: string[]): Promise<Json> {
  return commandFrom([], env, ...args)
}

/** The same, behind what becomes the command. */
export async function commandFrom(
  before: readonly string[],
  env: Env,
  ...args: string[]
): Promise<Json> {
  const options = { env, maxBuffer: 256 * 1024 * 1024, timeout: 60_000 }
  const [program, ...rest] = [...before, process.execPath, BIN, '--json', ...args]
  const ended = run(program!, rest, options)
  const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error)
  return jsonOf(stdout) ?? jsonOf(stderr) ?? { error: { code: 'crash', message: stderr } }
}

async function listed(env: Env, ...args: string[]): Promise<Json[]> {
  const items: Json[] = []
  for (let next: string | undefined = ''; next !== undefined;) {
    const page: Json = await command(env, ...args, ...(next === '' ? [] : ['--after', next]))
    if (!page.items) throw new Error(`${args.join(' ')}: ${JSON.stringify(page)}`)
    items.push(...page.items)
    next = page.next ?? undefined
  }
  return items
}

/** Everything that the store shows at the end, read by the command line. */
export async function readFinal(env: Env, hasQueue: boolean): Promise<Final> {
  const events = await listed(env, 'event', 'list', '--limit', '1000')
  const tasks = await listed(env, 'task', 'list', '--limit', '1000')
  const puts = hasQueue ? events.filter(({ type }) => type === 'memory.put') : []
  const check = await command(env, 'db', 'check')
  const told = check.problems ?? [check.error?.message ?? 'db check said nothing']
  return {
    events: events.toReversed(),
    tasks,
    notes: puts.map(({ data }) => data['key'] as string),
    problems: told.map((problem: unknown) => JSON.stringify(problem)),
  }
}

/** Every checker, over everything that is known of a world. */
export function judge(calls: Call[], facts: Fact[], final: Final, witness: string): Violation[] {
  const seen = seenIn(witness)
  return [
    ...checkFences(calls),
    ...checkStaleWrites(calls),
    ...checkRobbed(calls, facts),
    ...checkTogether(final.events),
    ...checkGaps(final.events),
    ...checkRequests(calls),
    ...checkTasks(calls, final),
    ...checkDurable(calls, final),
    ...checkCounter(calls, final),
    ...checkWitness(seen),
    ...checkRuns(seen, final.tasks),
    ...checkWaits(calls, facts),
    ...checkCodes(calls, facts),
  ]
}

/** What was answered, of a store whose disk gave up: it must not have been wrong before. */
export function judgeAnswers(scene: Scene): void {
  const calls = loadCalls(scene.calls)
  const facts = loadFacts(scene.calls)
  const found = [
    ...checkFences(calls),
    ...checkStaleWrites(calls),
    ...checkRobbed(calls, facts),
    ...checkRequests(calls),
  ]
  for (const { check, says } of found) scene.violate(check, says)
  scene.counts.figure('calls', calls.length)
  scene.counts.figure('disks that gave up', 1)
}

/** Reads what is left of a world, judges it, and counts. */
export async function judgeScene(scene: Scene, env: Env, hasQueue: boolean): Promise<void> {
  const final = await readFinal(env, hasQueue)
  const calls = loadCalls(scene.calls)
  const facts = loadFacts(scene.calls)
  const witness = readWitness(scene)
  for (const { check, says } of judge(calls, facts, final, witness)) scene.violate(check, says)
  for (const { ms, says } of waitsIn(calls, facts)) scene.counts.waited(ms, says)
  const { counts } = scene
  counts.figure('calls', calls.length)
  counts.figure('acknowledged', calls.filter(({ outcome }) => outcome === 'ok').length)
  counts.figure('unknown', calls.filter(({ outcome }) => outcome === 'unknown').length)
  counts.figure('events', final.events.length)
  counts.figure('commands run', seenIn(witness).filter(({ what }) => what === 'begin').length)
  counts.figure('waits measured', waitsIn(calls, facts).length)
}

function readWitness(scene: Scene): string {
  try {
    return readFileSync(join(scene.out, 'witness'), 'utf8')
  } catch {
    return ''
  }
}
