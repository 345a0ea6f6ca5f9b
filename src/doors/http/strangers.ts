import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** As many as may listen to events, and room for everybody else. */
const CONNECTIONS_MAX = 15_000
/** Kept for the store, /proc, runners and logs, whoever connects: at least, and of all. */
const RESERVED_MIN = 48
const RESERVED_SHARE = 1 / 4
/** Of the connections: free for those who come while strangers are being sent away. */
const ROOM_SHARE = 1 / 8

/**
 * Connections that have not shown a token that counts. When there is little room for more, the one
 * that came first goes: whoever connects and says nothing costs neither the descriptors that this
 * process works with nor the place of somebody with a token.
 */
export class Strangers {
  private readonly strangers = new Set<Socket>()
  private open = 0

  constructor(server: Server) {
    const max = connectionsMax()
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

  /** It showed a token that counts. */
  know(socket: Socket | null): void {
    if (socket) this.strangers.delete(socket)
  }

  private sendAwayFirst(): void {
    const [first] = this.strangers
    if (!first) return
    this.strangers.delete(first)
    first.destroy()
  }
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
