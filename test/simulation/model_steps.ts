import * as fc from 'fast-check'
import type { Lease } from '../../src/core/schema/lock.ts'
import { expect } from 'vitest'
import type { Claim } from '../../src/core/tasks/claim.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { type Status, STATUSES } from '../../src/core/rows.ts'
import { callerOf, MachineSim, type Open, temporaryFolder, Verbs } from '../support/helpers.ts'
import type { Model, Verdict } from './model.ts'

/** The store that is compared with the model. */
export class Real {
  readonly machine = new MachineSim()
  readonly verbs: Verbs
  /** The real fence of each grant that the model has counted. */
  readonly fences: number[] = [0]

  constructor(open: Open) {
    this.verbs = new Verbs(open(temporaryFolder(), this.machine))
  }

  fenceOf(grant: number): number | undefined {
    return grant === 0 ? undefined : this.fences[grant]
  }
}

type Step = fc.AsyncCommand<Model, Real>

/** One ask, put to both; their verdicts must agree, and so must all that can be seen afterwards. */
class Ask implements Step {
  constructor(
    private readonly name: string,
    private readonly inModel: (model: Model) => Verdict,
    private readonly inStore: (real: Real, model: Model) => Promise<unknown>,
  ) {}

  check(): boolean {
    return true
  }

  async run(model: Model, real: Real): Promise<void> {
    // Asked with what is true before: the model moves on when it decides.
    const asked = this.inStore(real, model)
    const expected = this.inModel(model)
    const said = await asked.then(
      (answer) => {
        learnFences(real, answer)
        return 'ok'
      },
      (error: unknown) => {
        if (error instanceof Refusal) return error.code
        throw error
      },
    )
    expectSame(this.name, said, expected)
    await expectAlike(model, real)
  }

  toString(): string {
    return this.name
  }
}

/** Every new fence is above all before it, whichever ask it came from. */
function learnFences(real: Real, answer: unknown): void {
  const leases = Array.isArray(answer) ? (answer as Lease[]) : [(answer as Claim | null)?.lease]
  const direct = answer as Lease | null
  const all = [...leases, typeof direct?.fence === 'number' ? direct : undefined]
  for (const lease of all)
    if (lease && lease.fence > real.fences.at(-1)!) real.fences.push(lease.fence)
}

function expectSame(what: string, seen: unknown, expected: unknown): void {
  expect({ [what]: seen }).toEqual({ [what]: expected })
}

async function expectAlike(model: Model, real: Real): Promise<void> {
  expectSame('grants', real.fences.length - 1, model.grants)
  for (const [name, held] of model.locks) {
    const lease = (await real.verbs.lease(name))!
    const seen = [lease.holder, lease.fence, lease.ended_at === null]
    expectSame(name, seen, [held.holder, real.fenceOf(held.grant), held.live])
  }
  for (const [id, { status, version, runs }] of model.tasks) {
    const seen = await real.verbs.task(id)
    expectSame(id, [seen.status, seen.version, seen.attempts], [status, version, runs])
  }
}

const agent = fc.constantFrom('ada', 'bob', 'cyd')
const task = fc.constantFrom('1', '2')
const lock = fc.constantFrom('a', 'b', 'task:1', 'task:2')
const ttl = fc.constantFrom(1_000, 5_000)
const status = fc.constantFrom<Status[]>(...STATUSES)
/** Counted back from the latest grant; null states no fence. */
const age = fc.option(fc.nat({ max: 4 }), { freq: 3 })
const grantAt = (model: Model, back: number | null) => {
  return back === null ? 0 : Math.max(model.grants - back, 0)
}

export const steps: fc.Arbitrary<Step>[] = [
  fc.tuple(fc.uniqueArray(lock, { minLength: 1, maxLength: 3 }), agent, ttl).map(([n, a, t]) => {
    const store = (r: Real) => r.verbs.takeAll(n, callerOf(a), { ttl_ms: t })
    return new Ask(`acquire ${n.join(', ')} as ${a} for ${t}`, (m) => m.acquire(n, a, t), store)
  }),
  fc.tuple(lock, agent, age).map(([n, a, g]) => {
    const store = (r: Real, m: Model) => r.verbs.renew(n, callerOf(a), r.fenceOf(grantAt(m, g)))
    return new Ask(`renew ${n} as ${a} at ${g}`, (m) => m.renew(n, a, grantAt(m, g)), store)
  }),
  fc.tuple(lock, agent, age).map(([n, a, g]) => {
    const store = (r: Real, m: Model) => r.verbs.release(n, callerOf(a), r.fenceOf(grantAt(m, g)))
    return new Ask(`release ${n} as ${a} at ${g}`, (m) => m.release(n, a, grantAt(m, g)), store)
  }),
  fc.tuple(lock, agent, age, agent).map(([n, a, g, to]) => {
    const store = (r: Real, m: Model) => {
      return r.verbs.handOff(n, callerOf(a), to, r.fenceOf(grantAt(m, g)))
    }
    const inModel = (m: Model) => m.handOff(n, a, grantAt(m, g), to)
    return new Ask(`hand off ${n} as ${a} at ${g} to ${to}`, inModel, store)
  }),
  task.map((id) => {
    return new Ask(
      `create ${id}`,
      (m) => m.create(id),
      (r) => r.verbs.add('x', callerOf('eve'), { id }),
    )
  }),
  fc.tuple(task, agent, ttl).map(([id, a, t]) => {
    const store = (r: Real) => r.verbs.claim(id, callerOf(a), { ttl_ms: t })
    return new Ask(`claim ${id} as ${a} for ${t}`, (m) => m.claim(id, a, t), store)
  }),
  fc.tuple(task, status, agent, age, ttl).map(([id, to, a, g, t]) => {
    const store = (r: Real, m: Model) => {
      return r.verbs.move(id, to, callerOf(a), r.fenceOf(grantAt(m, g)), { ttl_ms: t })
    }
    const inModel = (m: Model) => m.move(id, to, a, grantAt(m, g), t)
    return new Ask(`move ${id} to ${to} as ${a} at ${g} for ${t}`, inModel, store)
  }),
  fc.tuple(task, agent, fc.nat({ max: 1 })).map(([id, a, behind]) => {
    const version = (m: Model) => (m.tasks.get(id)?.version ?? 1) - behind
    const store = (r: Real, m: Model) => r.verbs.edit(id, version(m), { body: 'y' }, callerOf(a))
    return new Ask(`edit ${id} as ${a}, ${behind} behind`, (m) => m.edit(id, a, version(m)), store)
  }),
  fc.constantFrom(1, 999, 1_000, 4_000).map((ms) => {
    const inModel = (m: Model): Verdict => {
      m.advance(ms)
      return 'ok'
    }
    const store = async (r: Real) => r.machine.advance(ms)
    return new Ask(`${ms} ms pass`, inModel, store)
  }),
]
