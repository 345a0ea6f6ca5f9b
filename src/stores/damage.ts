import * as fs from 'node:fs'
import { Refusal } from '../core/refusal.ts'

/** What somebody found wrong with a store, and when. */
export interface Damage {
  message: string
  since: string
}

const NEXT = 'Nothing is written until it is mended: leasehold db restore BACKUP'

export function damaged(path: string, why: string): Refusal {
  return new Refusal('damaged', `The store ${path} is damaged: ${why}`, { next: NEXT })
}

export function refuseMarked(found: Damage | undefined): void {
  if (found) throw new Refusal('damaged', found.message, { next: NEXT })
}

/**
 * A file beside a database says that it was found damaged: every process that writes looks here
 * first. So a daemon does not go on with the pages that are still whole, and a command learns what
 * another has seen. It is about one file: of another one at that path, as a restore leaves, it says
 * nothing. Gone after a restore, or when `db check` finds nothing.
 */
export class DamageMark {
  private readonly file: string
  /** For as long as no file can be written. */
  private unwritten: Damage | undefined

  constructor(private readonly path: string) {
    this.file = `${path}.damage`
  }

  read(): Damage | undefined {
    const stat = fs.statSync(this.file, { throwIfNoEntry: false })
    if (!stat) return this.unwritten
    const text = fs.readFileSync(this.file, 'utf8').trim()
    const [, message, of] = /^(.*?)(?:\n(of file \S+))?$/s.exec(text)!
    if (of !== undefined && of !== this.subject()) return undefined
    return { message: message || 'The store was found damaged', since: stat.mtime.toISOString() }
  }

  /** The file that stands at the path now: to be asked before it is looked at. */
  subject(): string {
    const stat = fs.statSync(this.path, { throwIfNoEntry: false })
    return `of file ${stat ? `${stat.dev}:${stat.ino}` : 'none'}`
  }

  /** Of several that find something, the first is kept. To be left when it was proved twice. */
  leave(message: string, subject: string): void {
    if (this.read()) return
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants
    try {
      fs.rmSync(this.file, { force: true })
      const fd = fs.openSync(this.file, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
      fs.writeSync(fd, `${message}\n${subject}\n`)
      fs.closeSync(fd)
      this.unwritten = undefined
    } catch (error) {
      // A disk that takes no file takes no database either; what this process saw, it remembers.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
        this.unwritten ??= { message, since: new Date().toISOString() }
      }
    }
  }

  remove(): void {
    fs.rmSync(this.file, { force: true })
    this.unwritten = undefined
  }
}
