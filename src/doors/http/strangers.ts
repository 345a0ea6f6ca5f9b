import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '../../core/refusal.ts'

/** As many as may listen to events, and room for everybody else. */
const CONNECTIONS_MAX = 15_000
/** Descriptors kept for the store, /proc, runners and logs: at least so many, and this share. */
const RESERVED_MIN = 48
const RESERVED_SHARE = 1 / 4
/** Of the connections: free for those who come while strangers are being sent away. */
const ROOM_SHARE = 1 / 8
/** For one token, and of all connections: for one token, and for all that are no admin's. */
const TOKEN_MAX = 2_000
const TOKEN_SHARE = 1 / 2
const TOKENS_SHARE = 3 / 4

/**
 * Connections that have not shown a token that counts. When there is little room for more, the one
 * that came first goes: a client that connects and says nothing costs neither the descriptors that
 * this process works with nor the place of a client with a token.
 */
export class Strangers {
  private readonly strangers = new Set<Socket>()
  private readonly known = new WeakSet<Socket>()
  private readonly budgets = new Map<object, number>()
  private readonly max: number
  private open = 0
  private tokens = 0

  constructor(server: Server) {
    const max = connectionsMax()
    this.max = max
    const crowded = max - Math.ceil(max * ROOM_SHARE)
    server.maxConnections = max
    server.on('connection', (socket) => {
      this.open += 1
      this.strangers.add(socket)
      socket.once('close', () => {
        this.open -= 1
        this.strangers.delete(socket)
      })
      if (this.open > crowded) this.sendAwayFirst()
    })
  }

  /**
   * It showed a token that counts. One token's connections may not be all there are, nor those of
   * all tokens together: refuses with `rate_limited`. An admin's are not counted (`budget`).
   */
  know(socket: Socket | null, budget: object | undefined): void {
    if (!socket || this.known.has(socket)) return
    if (!budget) return void this.strangers.delete(socket)
    const used = this.budgets.get(budget) ?? 0
    const each = Math.min(TOKEN_MAX, Math.floor(this.max * TOKEN_SHARE))
    const all = Math.floor(this.max * TOKENS_SHARE)
    if (used >= each) throw tooMany('This token', each)
    if (this.tokens >= all) throw tooMany('All tokens together', all)
    this.strangers.delete(socket)
    this.known.add(socket)
    this.budgets.set(budget, used + 1)
    this.tokens += 1
    socket.once('close', () => {
      this.tokens -= 1
      const left = this.budgets.get(budget)! - 1
      if (left === 0) this.budgets.delete(budget)
      else this.budgets.set(budget, left)
    })
  }

  private sendAwayFirst(): void {
    const [first] = this.strangers
    if (!first) return
    this.strangers.delete(first)
    first.destroy()
  }
}

function tooMany(whose: string, limit: number): Refusal {
  return new Refusal('rate_limited', `${whose} may have ${limit} connections, and has them`, {
    next: 'Close some, or send several requests over one.',
    details: { budget: 'connections', limit, retry_after_seconds: 30 },
  })
}

function connectionsMax(): number {
  const files = filesMax()
  return Math.max(
    1,
    Math.min(CONNECTIONS_MAX, files - Math.max(RESERVED_MIN, files * RESERVED_SHARE)),
  )
}

/** How many files and connections this process may have open. */
function filesMax(): number {
  try {
    const text = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Number.POSITIVE_INFINITY)
  } catch {
    // No /proc, as on a Mac: there is nothing to go by.
    return Number.POSITIVE_INFINITY
  }
}
