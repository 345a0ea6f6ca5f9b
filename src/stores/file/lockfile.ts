import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessRef } from '../../core/rows.ts'
import { ownProcess, processFact } from '../../machine/process.ts'
import { systemCode } from '../../machine/errors.ts'

/** A lock file that stays the same for so long is in nobody's way but ours. */
const PATIENCE_MS = 500

/** One that names no process is being written just now, or corrupt. */
const CORRUPT_PATIENCE_MS = 100

const PAUSE_MS_MIN = 1
const PAUSE_MS_MAX = 4

/** Fifty that look every few milliseconds leave the one that works no time to work. */
const LOOK_MS_MAX = 64

/**
 * Keeps writers from deciding the same state in vain. Nothing depends on it: publishing does not
 * look at it, so it may be broken, stolen, corrupt or gone; a writer that cannot have it goes on.
 */
export class LockFile {
  private readonly path: string
  private mine: string | undefined
  private contended = false
  /** What stands in a file that cannot be removed, as on a disk that is read-only: nobody's. */
  private immovable: string | undefined

  constructor(dir: string) {
    this.path = join(dir, 'write.lock')
  }

  /** Waits while another process visibly works; never for one that is dead or makes no progress. */
  async take(): Promise<void> {
    if (this.contended) await pause(PAUSE_MS_MAX, PAUSE_MS_MAX)
    let seen = ''
    let since = performance.now()
    for (let pause_ms = PAUSE_MS_MIN; !this.tryTake();) {
      const text = this.read().trimEnd()
      if (text === this.immovable) return
      if (text !== seen) {
        since = performance.now()
        this.mark()
      }
      seen = text
      if (performance.now() - since >= patienceFor(text)) {
        if (this.remove()) continue
        this.immovable = text
        return
      }
      await pause(pause_ms)
      pause_ms = Math.min(pause_ms * 2, LOOK_MS_MAX)
    }
  }

  /**
   * Gives it back, unless somebody lost patience with us and has it now. Where others have left
   * their mark, we step back before we take it again: a busy process would else have it for ever.
   */
  release(): void {
    if (this.mine === undefined) return
    const text = this.read()
    this.contended = text.length > this.mine.length
    if (text.startsWith(this.mine) && !this.remove()) this.immovable = text.trimEnd()
    this.mine = undefined
  }

  /** Tells the holder that somebody waits: a blank at the end, which changes no meaning. */
  private mark(): void {
    try {
      const { O_APPEND, O_NOFOLLOW, O_WRONLY } = constants
      const fd = openSync(this.path, O_APPEND | O_NOFOLLOW | O_WRONLY)
      try {
        writeSync(fd, ' ')
      } finally {
        closeSync(fd)
      }
    } catch {
      // It is gone by now, or not for us to write.
    }
  }

  /** False only when another has it. A folder that cannot be written is not a reason to wait. */
  private tryTake(): boolean {
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
    let fd: number
    try {
      fd = openSync(this.path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
    } catch (error) {
      return systemCode(error) !== 'EEXIST'
    }
    this.mine = JSON.stringify({ ...ownProcess(), id: randomBytes(6).toString('hex') })
    try {
      writeSync(fd, this.mine)
    } catch {
      // A full disk takes the name but not the text; others would take it for corrupt, and wait.
      this.mine = undefined
      this.remove()
    } finally {
      closeSync(fd)
    }
    return true
  }

  /** Empty when it is gone, or there but cannot be read. */
  private read(): string {
    try {
      const flag = constants.O_RDONLY | constants.O_NOFOLLOW
      return readFileSync(this.path, { encoding: 'utf8', flag: flag as unknown as string })
    } catch {
      return ''
    }
  }

  private remove(): boolean {
    try {
      rmSync(this.path, { force: true })
      return true
    } catch {
      return false
    }
  }
}

function patienceFor(text: string): number {
  const ref = parseLock(text)
  if (!ref) return CORRUPT_PATIENCE_MS
  return processFact(ref) === 'dead' ? 0 : PATIENCE_MS
}

function parseLock(text: string): ProcessRef | undefined {
  try {
    const { host, seat, pid, start } = JSON.parse(text) as ProcessRef
    const whole = typeof seat === 'string' && pid > 0 && Number.isSafeInteger(pid)
    return whole ? { host, seat, pid, start } : undefined
  } catch {
    return undefined
  }
}

/** Random, so that among many writers everybody gets a turn. */
export function pause(pause_ms_max: number, pause_ms_min = 0): Promise<void> {
  const pause_ms = pause_ms_min + Math.random() * (pause_ms_max - pause_ms_min)
  return new Promise((resolve) => void setTimeout(resolve, pause_ms))
}
