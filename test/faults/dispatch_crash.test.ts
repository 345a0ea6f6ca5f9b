import { describe, expect, test } from 'vitest'
import { ROUNDS } from '../support/processes.ts'
import { type Cell, labelOf, survive } from './dispatch_crash.ts'

type Killed = Cell['victims'][]

/** Who is killed where: nobody has begun, it is being run, and it has ended but was not told. */
const BEFORE: Killed = [['starter'], ['runner'], ['runner', 'starter']]
const DURING: Killed = [...BEFORE, ['agent'], ['agent', 'runner'], ['agent', 'runner', 'starter']]

const MATRIX: Record<string, Record<string, Killed>> = {
  'before the agent begins': {
    'dispatcher:idle': [['starter']],
    'dispatcher:claimed': [['starter']],
    'dispatcher:spawned': BEFORE,
    'runner:spec': BEFORE,
    'runner:gated': BEFORE,
  },
  'while the agent runs': {
    'runner:started': DURING,
    'runner:running': [...DURING, ['agent', 'starter']],
  },
  'when the agent has ended': { 'runner:exited': BEFORE, 'runner:told': BEFORE },
}

/**
 * Runners and agents are the same whoever started them. What is shown of them under a daemon is
 * left out under `dispatch`, where its own death is the question; `npm run faults` plays all.
 */
const isPlayed = ({ starter, step, victims }: Cell) =>
  ROUNDS > 1 ||
  starter === 'daemon' ||
  (victims.includes('starter') && !victims.includes('runner')) ||
  (step === 'runner:running' && victims.join() === 'runner')

/** What is stopped goes on before there is a daemon again, or behind it; in turn, if in a hurry. */
function ordersOf({ starter, victims }: Omit<Cell, 'goesOn'>, at: number): Cell['goesOn'][] {
  const orders = ['first', 'last'] as const
  if (!victims.includes('starter') || victims.includes('runner')) return ['first']
  return ROUNDS > 1 ? [...orders] : [orders[(at + (starter === 'daemon' ? 0 : 1)) % 2]!]
}

/** So many at once as make the machine wait for timers rather than for its processors. */
const AT_ONCE = 6

async function faultsIn(cells: Cell[]): Promise<string[]> {
  const faults: string[] = []
  const waiting = [...cells]
  const work = async () => {
    for (let cell = waiting.shift(); cell; cell = waiting.shift()) {
      const found = await survive(cell)
      faults.push(...found.map((fault) => `${labelOf(cell)}: ${fault}`))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return faults
}

describe.each(['daemon', 'dispatch'] as const)('kill -9 under a %s', (starter) => {
  for (const [when, steps] of Object.entries(MATRIX)) {
    test(
      `${when}: each task ends once, and everything comes back`,
      { timeout: 90_000 * ROUNDS },
      async () => {
        const cells: Cell[] = []
        for (const [at, [step, killed]] of Object.entries(steps).entries()) {
          for (const victims of killed) {
            for (const goesOn of ordersOf({ starter, step, victims }, at)) {
              const cell = { starter, step, victims, goesOn }
              if (isPlayed(cell)) cells.push(...Array.from({ length: ROUNDS }, () => cell))
            }
          }
        }
        expect(await faultsIn(cells)).toEqual([])
      },
    )
  }
})
