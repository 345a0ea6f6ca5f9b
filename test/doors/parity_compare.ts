import { expect } from 'vitest'
import { operationNamed } from '../../src/operations/registry.ts'
import { expectAnswer } from './answer_check.ts'
import {
  argvOf,
  DOORS,
  directly,
  type Kind,
  type Outcome,
  placeOn,
  storeOf,
} from './parity_doors.ts'
import type { Choice, Step } from './parity_player.ts'
import { play } from './parity_script.ts'
import type { Json } from './serving.ts'

/** Facts about the process behind an agent, which a door may know or not. */
const OF_PROCESS = new Set(['pid', 'host', 'process', 'kind', 'acquired_by_pid'])
/** What differs between two stores without a difference in what happened. */
const OF_TIME = new Set([
  'expires_in_seconds',
  'last_seen_ms',
  'rank',
  'position',
  'held_ms',
  'ticket',
  'age_seconds',
  'score',
  'bytes',
  'free_bytes',
])
/** What a daemon and the making of its tokens leave in lists. */
const OTHERS = /^(?:daemon:|leasehold:|admin$|cli:)/

export const LONG = process.env['FAULTS'] === 'long'

/** A few hundred commands one after the other, on a machine that may be busy with other tests. */
export const PATIENCE_MS = 240_000

/** Higher than any that a script is granted. */
const INVENTED = 900_000

/** An outcome without what differs between two stores though the same happened on both. */
class Plain {
  /** Fences are counted from that of the first grant: a daemon was granted one before. */
  constructor(private readonly first: number) {}

  fence(value: number): string {
    return value > INVENTED ? 'invented' : `F${value - this.first}`
  }

  text(text: string): string {
    return (
      text
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
        // A server is a dispatcher, though it serves no project here.
        .replaceAll(/waits (?:for a|because no) dispatcher.*/g, '<nobody serves it>')
        .replaceAll(/ \(PID: \d+(?: on [^)]+)?\)/g, '')
        .replaceAll(/(fence |latest is |the lease |#)(\d+)/gi, (_, before: string, n) => {
          return before + this.fence(Number(n))
        })
        .replaceAll(/\bL\d+\b/g, '<landing>')
        .replaceAll(/[0-9a-f]{8}-?[0-9a-f]{4}[0-9a-f-]*/g, '<id>')
    )
  }

  of(value: Json, key = ''): Json {
    if (key.endsWith('fence') && typeof value === 'number') return this.fence(value)
    if (OF_TIME.has(key)) return '<time>'
    // Where a list goes on, and what to do after a refusal: each door has its own words for that.
    if (key === 'next' && typeof value === 'string') return '<next>'
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) {
      return value
        .filter((each) => !OTHERS.test(String(each?.created_by ?? each?.name ?? each?.id ?? '')))
        .map((each) => this.of(each))
    }
    if (typeof value !== 'object' || value === null) return value
    const kept = Object.entries(value).filter(([name]) => !OF_PROCESS.has(name))
    return Object.fromEntries(kept.map(([name, each]) => [name, this.of(each, name)]))
  }
}

/** The transcript as it may be compared, step by step. */
function plain(steps: Step[]): { asked: string; name: string; outcome: Outcome | undefined }[] {
  const [begin] = steps
  const made = new Plain((begin!.outcome as { answer: { fence: number } }).answer.fence)
  return steps.map(({ asked, name, outcome }) => ({
    asked: asked.replaceAll(/"fence":\d+|"after":"[^"]*"|"L\d+"/g, ''),
    name,
    outcome: outcome && made.of(outcome),
  }))
}

/** What every door on every store is compared with: the same calls on SQLite without any door. */
let compared: Promise<Step[]> | undefined
export const reference = () => (compared ??= withoutDoor('sqlite'))

export async function withoutDoor(kind: Kind): Promise<Step[]> {
  const store = storeOf(placeOn(kind))
  const steps = await play({ door: directly(store), store })
  expectAnswers(steps)
  return steps
}

function expectAnswers(steps: Step[]): void {
  for (const { name, outcome } of steps) {
    if (outcome && 'answer' in outcome) expectAnswer(name, outcome.answer)
  }
}

/** What an outcome is called: the code of a refusal, or `ok`. */
export const codeOf = (outcome: Outcome | undefined) =>
  outcome && ('refused' in outcome ? outcome.refused.code : 'ok')

/**
 * The fewest steps that show all that a command can show: every outcome of an operation, and every
 * field of its input. The others set the scene, or show a rule: the same behind every door.
 */
function fewestThatShowAll(steps: Step[]): Choice {
  const kindsOf = ({ name, input, outcome }: Step) => {
    const fields = Object.keys(input).map((field) => `${name} ${field}`)
    return [`${name} = ${codeOf(outcome)}`, ...fields]
  }
  const sayable = [...steps.entries()].filter(([, { name, input }]) => {
    return argvOf(operationNamed.get(name)!, input)
  })
  const left = new Set(sayable.flatMap(([, step]) => kindsOf(step)))
  const chosen = new Set<number>()
  const worth = (step: Step) => kindsOf(step).filter((kind) => left.has(kind)).length
  while (left.size > 0) {
    const [at, step] = sayable.reduce((a, b) => (worth(b[1]) > worth(a[1]) ? b : a))
    chosen.add(at)
    for (const kind of kindsOf(step)) left.delete(kind)
  }
  return chosen
}

/** Compares what came of the calls with what comes of them on SQLite without any door. */
export async function expectSame(steps: Step[], isShort = false, wanted?: Step[]): Promise<void> {
  const expected = plain(wanted ?? (await reference()))
  if (!isShort) expectAnswers(steps)
  const got = plain(steps)
  expect(got.map(({ asked }) => asked)).toEqual(expected.map(({ asked }) => asked))
  let looked = 0
  for (const [i, { asked, outcome }] of got.entries()) {
    if (outcome === undefined) continue
    looked += 1
    const due = expected[i]!.outcome!
    // A tool may leave fields of an answer out to be short; what it says must be the same.
    if (isShort && 'answer' in outcome && 'answer' in due) {
      expect(due.answer, asked).toMatchObject(outcome.answer as object)
    } else if (isShort && 'refused' in due) {
      // Of what can be done a tool tells the words alone, in which the call stands.
      const { actions: _, ...refused } = due.refused
      expect({ asked, outcome }).toEqual({ asked, outcome: { refused } })
    } else expect({ asked, outcome }).toEqual({ asked, outcome: due })
  }
  expect(looked).toBeGreaterThan(120)
}

/**
 * Plays all calls through this door on a store of this kind, and compares. Where each call takes a
 * process, those that repeat what another showed are done without the door.
 */
export async function expectParity(door: string, kind: Kind): Promise<void> {
  const wanted = await reference()
  const isCostly = !LONG && door.startsWith('commands')
  const choice = isCostly ? fewestThatShowAll(wanted) : undefined
  const steps = await play(await DOORS[door]!(kind), choice)
  await expectSame(steps, door.startsWith('MCP'), wanted)
}
