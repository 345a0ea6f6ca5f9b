import { closeSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { openPrivate } from '../../machine/private_file.ts'
import { OUTPUT, OUTPUT_CUT, OUTPUT_OLDER } from '../../machine/run_output.ts'

/**
 * What a command says, in two files of bounded size: when one is full it takes the place of the
 * older one. What cannot be written (the disk is full) is dropped, because a command must never
 * wait for its log; a line in the log says how much, as soon as there is room for it.
 */
export class OutputLog {
  private readonly bytes_max: number
  private fd: number | undefined
  private bytes = 0
  private opened = 0
  private dropped = 0
  private trouble = ''

  /** Takes over the folder: what another run left there is not ours. */
  constructor(
    private readonly folder: string,
    log_bytes_max: number,
  ) {
    this.bytes_max = Math.max(1, Math.floor(log_bytes_max / 2))
    for (const name of [OUTPUT, OUTPUT_OLDER, OUTPUT_CUT])
      rmSync(join(folder, name), { force: true })
    this.attempt(() => this.open())
  }

  write(chunk: Buffer): void {
    if (this.dropped > 0 && !this.append(this.notice())) {
      this.dropped += chunk.length
      return
    }
    this.dropped = 0
    const left = chunk.length - this.appended(chunk)
    this.dropped += left
  }

  /** Says what is still unsaid, if there is room for it now. */
  close(): void {
    if (this.dropped > 0) this.append(this.notice())
    if (this.fd !== undefined) closeSync(this.fd)
    this.fd = undefined
  }

  private notice(): Buffer {
    return Buffer.from(`\n[leasehold: ${this.dropped} bytes were lost here: ${this.trouble}]\n`)
  }

  private append(bytes: Buffer): boolean {
    return this.appended(bytes) === bytes.length
  }

  /** Writes as much as can be written, in pieces that fit, and says how much that was. */
  private appended(bytes: Buffer): number {
    let at = 0
    this.attempt(() => {
      while (at < bytes.length) {
        if (this.fd === undefined || this.bytes >= this.bytes_max) this.open()
        const length = Math.min(bytes.length - at, this.bytes_max - this.bytes)
        const wrote = writeSync(this.fd!, bytes, at, length)
        this.bytes += wrote
        at += wrote
      }
    })
    return at
  }

  /** A new file; the full one becomes the older one. */
  private open(): void {
    if (this.fd !== undefined) {
      closeSync(this.fd)
      this.fd = undefined
      renameSync(join(this.folder, OUTPUT), join(this.folder, OUTPUT_OLDER))
    }
    this.fd = openPrivate(join(this.folder, OUTPUT))
    this.bytes = 0
    this.opened += 1
    // The first of three is gone: who reads from the beginning is told so.
    if (this.opened === 3) closeSync(openPrivate(join(this.folder, OUTPUT_CUT)))
  }

  private attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.trouble = (error as NodeJS.ErrnoException).code ?? String(error)
    }
  }
}
