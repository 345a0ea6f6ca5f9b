import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { planted } from '../core/planted.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { fileRefusal, systemCode } from '../machine/errors.ts'
import type { Head } from './port.ts'
import { boot } from '../machine/process.ts'

/** How many fences are reserved at a time: one fsync for so many grants. */
const BLOCK = 16_384
const LINE_LENGTH = 96
const LINES = ['committed', 'begun', 'reserved'] as const

export type Numbers = Pick<Head, 'epoch' | 'fences' | 'position'>

export interface Kept {
  /** A commit that is durable: the store never goes back behind it. */
  committed: Numbers | undefined
  /** The last commit that was about to be made, whatever became of it. */
  begun: Numbers | undefined
  /** Fsynced: no fence above this one was given. */
  reserved: (Numbers & { boot: string }) | undefined
}

/**
 * A second witness of how far a store has come, in a small file beside it. A database that lost its
 * newest commits is sound in itself: only somebody who saw them can tell that they are missing.
 *
 * The numbers are written with every commit but not synced, which costs microseconds: they survive
 * the death of every process, though not a power loss. For that, fences are reserved in blocks with
 * an fsync each, and the first process after a boot goes on behind the block.
 */
export class Witness {
  private readonly file: string
  private fd: number | undefined
  private reserved: Kept['reserved']
  private begun: Kept['begun']

  /** `storePath`: what the file stands beside. Its name does not begin with the store's own. */
  constructor(storePath: string) {
    this.file = join(dirname(storePath), `witness.${basename(storePath)}`)
  }

  /**
   * Refuses (`damaged`) a head behind what was committed. Without the write lock, `kept` has
   * to be read before that head was: others go on meanwhile.
   */
  check(head: Numbers, kept = this.read()): void {
    const fault = this.faultOf(head, kept)
    if (fault === undefined) return
    throw new Refusal('damaged', fault, {
      next:
        'Nothing is written until it is mended: leasehold db restore BACKUP. To begin with ' +
        `nothing instead, remove the folder ${dirname(this.file)}.`,
      details: { committed: kept.committed && numbersOf(kept.committed), found: numbersOf(head) },
    })
  }

  /** What `check` would say. */
  faultOf(head: Numbers, { committed } = this.read()): string | undefined {
    if (!committed || !isBehind(head, committed) || planted('S3 witness')) return undefined
    return (
      `The store has lost what was committed: ${told(committed)}; ` +
      `now it has ${told(head)} (${this.file})`
    )
  }

  /**
   * The head to decide on: as it is, but with its fences raised above those that may have been
   * given before, by a commit that got lost or was never made. To be asked under the write lock.
   */
  checked(head: Head): Head {
    const kept = this.read()
    this.check(head, kept)
    this.reserved = kept.reserved
    this.begun = kept.begun
    if (planted('S3 witness')) return head
    const isNewBoot = kept.reserved?.boot !== boot
    const floors = [kept.begun, isNewBoot ? kept.reserved : undefined]
    const same = floors.filter((each) => each?.epoch === head.epoch)
    return { ...head, fences: Math.max(head.fences, ...same.map((each) => each!.fences)) }
  }

  /** Before a commit that would leave `next`, under the write lock. */
  begin(next: Numbers): void {
    this.attempt((fd) => {
      const { reserved } = this
      const isCovered = reserved?.epoch === next.epoch && next.fences <= reserved.fences
      if (!isCovered || reserved.boot !== boot) {
        const { epoch, position } = next
        this.reserved = { epoch, fences: next.fences + BLOCK, position, boot }
        put(fd, 'reserved', [epoch, this.reserved.fences, position, boot])
        fs.fsyncSync(fd)
      }
      const { begun } = this
      // Most commits give no fence, and only fences are read back from here.
      if (begun?.epoch === next.epoch && begun.fences === next.fences) return
      put(fd, 'begun', listOf(next))
      this.begun = numbersOf(next)
    })
  }

  /**
   * After a commit, before its answers. Not under the lock any more: of two processes the slower
   * one may set this back by one commit, until the next. `begun` is never set back, so that even
   * then no fence comes again.
   */
  end(head: Numbers): void {
    this.attempt((fd) => put(fd, 'committed', listOf(head)), this.fd)
  }

  /**
   * What is seen of a store that others write too, and that is kept elsewhere: the newest stays.
   * Where nothing can be written there is no witness, and the store is used without one.
   */
  saw(head: Numbers): void {
    try {
      const { committed } = this.read()
      if (committed && !isBehind(committed, head)) return
      put(this.open(), 'committed', listOf(head))
    } catch {
      // It says what it said before.
    } finally {
      this.close()
    }
  }

  private attempt(step: (fd: number) => void, fd?: number): void {
    try {
      step(fd ?? this.open())
    } catch (error) {
      throw fileRefusal(error, this.file)
    }
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd)
    this.fd = undefined
  }

  read(): Kept {
    try {
      return this.readOnce()
    } catch (error) {
      // What is being written just now may be read as half of each.
      if (isRefusal(error, 'damaged')) return this.readOnce()
      throw error
    }
  }

  private readOnce(): Kept {
    let text: string
    try {
      const fd = fs.openSync(this.file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
      text = fs.readFileSync(fd, 'utf8')
      fs.closeSync(fd)
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw fileRefusal(error, this.file)
      return { committed: undefined, begun: undefined, reserved: undefined }
    }
    const [committed, begun, reserved] = LINES.map((_, i) => {
      const line = text.slice(i * LINE_LENGTH, (i + 1) * LINE_LENGTH)
      return line.replaceAll('\0', '').trim() === '' ? undefined : this.parse(line)
    })
    return { committed, begun, reserved }
  }

  private parse(line: string): Numbers & { boot: string } {
    const [, said = '', sum] = /^(.*) (\d+) *\n$/.exec(line) ?? []
    const [epoch, fences, position, during = ''] = said.split(' ')
    const numbers = [epoch, fences, position].map(Number)
    if (Number(sum) === sumOf(said) && numbers.every(Number.isSafeInteger)) {
      return { epoch: numbers[0]!, fences: numbers[1]!, position: numbers[2]!, boot: during }
    }
    throw new Refusal('damaged', `${this.file} does not hold what was written into it`, {
      next: 'If leasehold db check finds the store sound, remove that file: it is made anew.',
    })
  }

  /** Kept open, and made anew when somebody removed it. */
  private open(): number {
    if (this.fd !== undefined && fs.fstatSync(this.fd).nlink > 0) return this.fd
    const isNew = this.fd !== undefined || !fs.existsSync(this.file)
    this.close()
    // What was read of the file counts as long as the file does.
    if (isNew) [this.reserved, this.begun] = [undefined, undefined]
    const { O_CREAT, O_RDWR, O_NOFOLLOW } = fs.constants
    this.fd = fs.openSync(this.file, O_CREAT | O_RDWR | O_NOFOLLOW, 0o600)
    if (isNew) syncFolder(dirname(this.file))
    return this.fd
  }
}

const listOf = ({ epoch, fences, position }: Numbers) => [epoch, fences, position]

const numbersOf = ({ epoch, fences, position }: Numbers) => ({ epoch, fences, position })

const told = ({ epoch, fences, position }: Numbers) =>
  `${position} events and ${fences} fences of epoch ${epoch}`

/** Whether a store went back: what `head` says is less than what was `seen`. */
export function isBehind(head: Numbers, seen: Numbers): boolean {
  if (head.epoch !== seen.epoch) return head.epoch < seen.epoch
  return head.position < seen.position || head.fences < seen.fences
}

/** Lines of one length within one sector of a disk: each is the old one or the new one. */
function put(fd: number, line: (typeof LINES)[number], words: (number | string)[]): void {
  const said = words.join(' ')
  const text = `${said} ${sumOf(said)}`.padEnd(LINE_LENGTH - 1)
  fs.writeSync(fd, `${text}\n`, LINES.indexOf(line) * LINE_LENGTH)
}

function sumOf(text: string): number {
  let sum = 7
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) % 1_000_003
  return sum
}

function syncFolder(path: string): void {
  const fd = fs.openSync(path, 'r')
  fs.fsyncSync(fd)
  fs.closeSync(fd)
}
