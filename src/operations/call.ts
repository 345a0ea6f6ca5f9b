import { seeAgent } from '../core/locks/agent.ts'
import type { Caller } from '../core/caller.ts'
import { TICKET_MS } from '../core/bounds.ts'
import type { Waiting } from '../core/locks/lock.ts'
import { planted } from '../core/planted.ts'
import { Refusal } from '../core/refusal.ts'
import type { ProcessRef } from '../core/rows.ts'
import { Sight } from '../core/sight.ts'
import { isScoped, type Scoped } from '../core/token_scope.ts'
import { answerTo, refuseOutside, toldTo, wholeOnly } from '../core/touched.ts'
import type { Need, View } from '../core/view.ts'
import { newRequestId } from '../machine/digest.ts'
import type { Asked, SentAsk } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'
import { waitForTask } from './claim_wait.ts'
import { spend, usedBy, whileCounted } from './budget.ts'
import { agentId } from './fields.ts'
import { type Fields, type Input, type Operation, parseInput } from './operation.ts'
import { inSteps, type ListPage, type Paged } from './page.ts'
import { once, requestOf, whileNoted } from './request.ts'
import { waitInLine } from './wait.ts'

/** What is looked up outside of a view is read in pieces, between which others are answered. */
const LOOKUP_MS = 5

/** One object for all calls: a schema is built once per set of fields. */
const WHO = { agent: agentId }

/**
 * One call, whichever door it came through: checks the input, may wait, and has one effect per
 * request id.
 */
export async function call<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  raw: Record<string, unknown>,
  caller: Caller,
  signal?: AbortSignal,
): Promise<O> {
  const check = () => checked(store, operation, raw, caller)
  const input = usedBy(caller)?.turn.timed(check) ?? check()
  if (operation.effect === 'read') return look(store, operation, input, caller)
  const uses = usedBy(caller)
  const spent = uses && (await spend(uses, operation, input))
  try {
    const reply = await change(store, operation, input, caller, signal)
    spent?.(operation.spends?.(input, reply) ?? {})
    return reply
  } catch (error) {
    spent?.({})
    throw error
  }
}

/**
 * For a leader: decides, now, what was sent to it by another process of the same version, which
 * has checked it, has done with the caller's budget and does the waiting. `guard` may refuse it at
 * the very moment of the decision.
 */
export function decideSent<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  { input: sent, request, caller, ticket_id }: SentAsk,
  guard: (view: View) => void,
): Promise<O | Waiting> {
  const input = sent as Input<F>
  const decide = decisionOf(operation, input, caller, request)
  const guarded = (view: View) => {
    guard(view)
    return decide(view, ticket_id)
  }
  return store.write(guarded, readsOf(operation, input, caller, request))
}

/** The input, if this caller may ask this of this store. */
function checked<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  raw: Record<string, unknown>,
  caller: Caller,
): Input<F> {
  // Some doors take the id from where nobody has checked it: a file, or a program's own code.
  parseInput(WHO, { agent: caller.agent })
  const input = placed(store, operation, parseInput(operation.input, raw), caller)
  if (operation.role === 'admin' && !caller.admin) throw adminOnly(operation.name)
  if (operation.needs === 'database' && !store.isDatabase) throw fileStore(operation.name)
  if (operation.effect === 'write' && !operation.names_ours) refuseOurs(input)
  if (operation.touches === 'whole' && isScoped(caller)) throw wholeOnly(operation.name)
  return input
}

async function look<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
): Promise<O> {
  const contended = operation.touches === 'contended'
  const turn = usedBy(caller)?.turn
  if (operation.lookup) turn?.spend(LOOKUP_MS)
  const found = await operation.lookup?.(store, input, caller)
  const timed = <T>(decide: () => T) => (turn ? turn.timed(decide) : decide())
  const decide = (view: View, asked = input) =>
    timed(() => operation.decide(view, asked, caller, undefined, found)) as O
  if (!isScoped(caller)) return store.read(decide)
  const seen = (asked: Input<F>) =>
    store.read((view): [O, Sight] => {
      const sight = new Sight(view, caller, contended)
      return [decide(sight, asked), sight]
    })
  if (!isPaged(operation)) return (await seen(input))[0]
  const step = (asked: Paged) => seen({ ...input, ...asked }) as Promise<[ListPage, Sight]>
  return (await inSteps(step, input as unknown as Paged)) as O
}

const isPaged = ({ input }: Operation) => 'limit' in input && 'after' in input

/** What is decided over a view, once per request id. */
function decisionOf<F extends Fields, O>(
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  request: Asked | undefined,
): (view: View, ticket_id?: string) => O | Waiting {
  return (view, ticket_id) => {
    seeAgent(view, caller)
    const ask = () => once(view, request, operation, input, caller, ticket_id)
    return isScoped(caller) ? withinScope(view, operation, input, caller, ask) : ask()
  }
}

/** What it will look at for certain: a row that is missing here costs a batch a second round. */
function readsOf<F extends Fields, O>(
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  request: Asked | undefined,
): Need[] {
  const named = operation.reads?.(input, caller) ?? []
  return request ? [...named, { table: 'request', key: request.key }] : named
}

function change<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  signal: AbortSignal | undefined,
): Promise<O> {
  const turn = usedBy(caller)?.turn
  const request = requestOf(operation.name, input, caller)
  // A leader may go away before it answers: what it is sent has an id, to be asked again under.
  const sent = request || !store.leader?.isLed ? input : { ...input, request_id: newRequestId() }
  const asked = request ?? requestOf(operation.name, sent, caller)
  const decide = decisionOf(operation, sent, caller, asked)
  const timed: typeof decide = (view, ticket_id) => {
    if (!turn) return decide(view, ticket_id)
    try {
      return turn.timed(() => decide(view, ticket_id))
    } finally {
      // A waiting ask is decided again whenever something becomes free.
      turn.end()
    }
  }
  const ask = (ticket_id?: string): Promise<O | Waiting> => {
    const reads = readsOf(operation, sent, caller, asked)
    const direct = () => store.write((view) => timed(view, ticket_id), reads)
    if (!store.leader) return direct()
    const ours = { operation: operation.name, input: sent, request: asked, caller, ticket_id }
    const decided = store.leader.decide(ours, direct)
    return turn ? decided.finally(() => turn.end()) : decided
  }
  const claim = ask as () => Promise<O>
  const wait_ms = Number(input['wait_seconds'] ?? 0) * 1000
  if (wait_ms === 0) return claim()
  const wait = () => {
    if (operation.waits !== 'task') {
      return waitInLine(store, ask, { wait_ms, caller, signal, ticket_id: request?.key })
    }
    return whileNoted(store, request, claim, (noting) => {
      return waitForTask(store, noting, { wait_ms, signal })
    })
  }
  return whileCounted(operation, input, caller, wait, () => {
    // A waiter that was cut off may come back to its place, which counts as used until then.
    return signal?.aborted && request ? TICKET_MS : 0
  })
}

/**
 * On a store that machines share, a checkout is named with its machine. A client that knows only
 * the address of a server cannot know that, and sends the path alone; its process says where it is.
 */
function placed<F extends Fields, O>(
  store: Store,
  { input: fields }: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
): Input<F> {
  if (!store.isShared || !('checkout' in fields)) return input
  const said = input as Input<Fields>
  const { host } =
    (said['process'] as ProcessRef | null | undefined) ?? caller.process ?? store.machine
  const named = (place: unknown) =>
    typeof place === 'string' && place.startsWith('/') ? `${host}:${place}` : place
  const { checkout, repository } = said
  const places = { checkout: named(checkout), repository: named(repository) }
  return { ...input, ...('repository' in fields ? places : { checkout: places.checkout }) }
}

const OURS = 'leasehold:'

/** By locks with these names our programs agree which of them serves. Only an admin frees one. */
function refuseOurs({ name: lock, names }: Input<Fields>): void {
  const asked = [lock, ...(Array.isArray(names) ? (names as unknown[]) : [])]
  const ours = asked.find((each) => typeof each === 'string' && each.startsWith(OURS))
  if (ours === undefined) return
  throw new Refusal('forbidden', `${OURS}* are locks of leasehold's own programs`, {
    next: 'Choose another name.',
  })
}

/**
 * Refuses what is outside of the caller's scope; neither what is answered nor what is refused names
 * whom the caller may not know.
 */
function withinScope<F extends Fields, O>(
  view: View,
  { touches }: Operation<F, O>,
  input: Input<F>,
  caller: Scoped,
  ask: () => O | Waiting,
): O | Waiting {
  if (typeof touches === 'function' && !planted('R48')) refuseOutside(view, touches(input), caller)
  try {
    return answerTo(view, ask(), caller)
  } catch (error) {
    throw error instanceof Refusal ? toldTo(view, error, caller) : error
  }
}

/** R38: the whole document of a file store is written with every commit. */
function fileStore(name: string): Refusal {
  const lacks = /^(?:queue|run|land)\./.test(name) ? 'queue' : 'memory'
  return new Refusal('invalid', `${name} needs a database: a file store has no ${lacks}`, {
    next: 'Unset LEASEHOLD_STORE to use SQLite; leasehold db copy brings along what is here.',
  })
}

function adminOnly(name: string): Refusal {
  return new Refusal('forbidden', `${name} is for admins`, {
    next: 'Ask a person with an admin token.',
    details: { admin: true },
  })
}
