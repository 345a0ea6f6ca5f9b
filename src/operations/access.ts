import type { Cursor } from '../core/schema/indexes.ts'
import { admits, type Caller } from '../core/caller.ts'
import { endsRun, factsOf } from '../core/event.ts'
import { type HeldCounts, leasesHeld, tasksMade } from '../core/paths/held.ts'
import { word } from '../core/quote.ts'
import { Refusal } from '../core/refusal.ts'
import { validToken } from '../core/token.ts'
import type { TokenScope } from '../core/rows.ts'
import type { View } from '../core/view.ts'
import { sha256 } from '../machine/digest.ts'
import type { Store } from '../stores/writer/store.ts'
import { type Budget, Budgets, type Uses } from './budget.ts'
import { agentId } from './fields.ts'
import { parseInput, type TokenRole } from './operation.ts'
import { type End, TokenWatch } from './token_watch.ts'

/** Who a secret stands for. */
export interface Bearer {
  role: TokenRole
  agent: string
  /** What it is bound to, if anything. */
  scope?: TokenScope | undefined
  /** What its token uses of what all share; an admin's has none. */
  budget?: Budget | undefined
  /** The same for one ask, once it was let in. */
  uses?: Uses | undefined
}

/** A revocation through another process counts at the latest after this time. */
const REMEMBER_MS = 1_000
const REMEMBERED_MAX = 10_000

/** Tells who may come in. Knows the admin secret of this daemon, and the tokens of the store. */
export class Access {
  private readonly adminHash: string
  private readonly known = new Map<string, { bearer: Bearer; until_ms: number }>()
  private readonly open: TokenWatch
  private readonly budgets: Budgets
  /** How many there were: a token that was read before a revocation is not remembered after it. */
  private revocations = 0

  constructor(
    private readonly store: Store,
    adminSecret: string,
  ) {
    this.adminHash = sha256(adminSecret)
    this.open = new TokenWatch(store)
    this.budgets = new Budgets((agent) => (kind) => heldIn(store, agent, kind))
    store.onCommit((events) => {
      if (events.some(({ type }) => type === 'token.revoked')) {
        this.revocations += 1
        this.known.clear()
      }
      for (const event of events) {
        if (endsRun(event)) this.forget([event.agent, factsOf(event).holder])
      }
    })
  }

  /** The token of a run dies with it. */
  private forget(agents: unknown[]): void {
    for (const [hash, { bearer }] of this.known) {
      if (agents.includes(bearer.agent)) this.known.delete(hash)
    }
  }

  /** The bearer of a secret, or `unauthorized`. Secrets are compared by their hashes only. */
  async bearerOf(secret: string | undefined): Promise<Bearer> {
    if (!secret) throw unauthorized('No token was sent')
    const hash = sha256(secret)
    if (hash === this.adminHash) return { role: 'admin', agent: 'admin' }
    const now = performance.now()
    const known = this.known.get(hash)
    if (known && now < known.until_ms) return known.bearer
    const { revocations } = this
    const { token, read_ms } = await this.lookUp(hash)
    if (!token) throw unauthorized('This token is unknown, expired or revoked')
    const { role, scope } = token
    const agent = token.agent ?? `${role}:${token.id}`
    const bearer: Bearer = {
      role,
      agent,
      ...(scope && { scope }),
      ...(role !== 'admin' && { budget: this.budgets.of(hash, agent) }),
    }
    if (this.revocations !== revocations) return bearer
    if (this.known.size >= REMEMBERED_MAX) this.known.clear()
    const left_ms = token.expires_ms === null ? REMEMBER_MS : token.expires_ms - read_ms
    this.known.set(hash, { bearer, until_ms: now + Math.min(left_ms, REMEMBER_MS) })
    return bearer
  }

  /**
   * Every agent's token is looked up once a second. A sweep can end the tokens of runs only, with
   * their leases: so it is left out for all others.
   */
  private async lookUp(hash: string) {
    const look = (view: View) => ({ token: validToken(view, hash), read_ms: view.now })
    const found = await this.store.read(look, false)
    const isOfRun = (found.token?.scope?.task ?? null) !== null
    return isOfRun ? this.store.read(look) : found
  }

  /** Waits until an ask of this kind may begin; refuses with `rate_limited` if it may not. */
  async letIn(bearer: Bearer, kind: string): Promise<Bearer> {
    const { budget } = bearer
    if (budget) return { ...bearer, uses: { budget, turn: await budget.turn(kind) } }
    this.budgets.company.came(undefined)
    return bearer
  }

  /**
   * For what stays open after its bearer was let in: calls `end` when the secret stops counting.
   * Returns what to call when nothing is open any more. The secret of this daemon lasts as it does.
   */
  watch(secret: string | undefined, end: End): () => void {
    const hash = sha256(secret ?? '')
    return hash === this.adminHash ? () => undefined : this.open.watch(hash, end)
  }

  /** Ends what is open with this secret. */
  endAll(secret: string | undefined): void {
    this.open.end(sha256(secret ?? ''))
  }
}

/** Counts what `agent` and those nested under it keep: in steps, where it may be much. */
async function heldIn(
  store: Store,
  agent: string,
  kind: keyof HeldCounts,
): Promise<Partial<HeldCounts>> {
  if (kind !== 'tasks_waiting') return store.read((view) => leasesHeld(view, agent))
  let tasks_waiting = 0
  let from: Cursor | undefined
  do {
    const { made, next } = await store.read((view) => tasksMade(view, agent, from))
    tasks_waiting += made
    from = next
  } while (from)
  return { tasks_waiting }
}

function unauthorized(message: string): Refusal {
  return new Refusal('unauthorized', message, {
    next: 'Send "Authorization: Bearer TOKEN". Make one: leasehold token create --role agent',
  })
}

/** Asks for something that may wait, until one of `signals` or the end of what it asks with. */
export type Waiter = <T>(
  signals: AbortSignal[],
  ask: (signal: AbortSignal) => Promise<T>,
) => Promise<T>

/** Nobody gets a lock with a token that was revoked while it waited in line. */
export async function whileValid<T>(
  access: Access,
  secret: string | undefined,
  signals: AbortSignal[],
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const leave = access.watch(secret, (reason) => ending.abort(reason))
  return ask(AbortSignal.any([...signals, ending.signal])).finally(leave)
}

const BY_TOKEN = { by_token: true } as const

/** One object for all calls: a schema is built once per set of fields, which costs 40 µs. */
const NAMED = { agent: agentId }

/**
 * Who is asking: the agent that the token names. It may name ids nested under its own; only an
 * admin may name any other.
 */
export function callerFor(bearer: Bearer, named: unknown, more: Partial<Caller> = {}): Caller {
  const { agent } = named === undefined ? bearer : parseInput(NAMED, { agent: named })
  const admin = bearer.role === 'admin'
  if (!admin && !admits(bearer.agent, agent)) {
    throw new Refusal(
      'forbidden',
      `This token is for ${word(bearer.agent)} and cannot act as ${word(agent)}`,
      { next: `Leave agent out, or name a subagent: ${word(bearer.agent)}/NAME` },
    )
  }
  const { scope, uses } = bearer
  const bounds = { ...(scope && { scope }), ...(uses && { uses }), ...(!admin && BY_TOKEN) }
  return { agent, given: true, process: null, under: null, admin, ...bounds, ...more }
}

const RANK: Record<TokenRole, number> = { viewer: 0, agent: 1, admin: 2 }

/** Roles bound the doors: a viewer reads, an agent works, an admin may do all. */
export function refuseRole(bearer: Bearer, operation: { name: string; role: TokenRole }): void {
  if (RANK[bearer.role] >= RANK[operation.role]) return
  throw new Refusal('forbidden', `${operation.name} needs the role ${operation.role}`, {
    next: `This token has the role ${bearer.role}. Ask for one with more rights.`,
  })
}
