import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'

/** Programs of the system, where it has them; no package brings them. */
const [MOUNT, UMOUNT, MKFS, PERL] = ['mount', 'umount', 'mkfs.ext4', 'perl'] as const

/** Ends a file system as a power cut does: what was not synced is gone (EXT4_IOC_SHUTDOWN, 2). */
const SHUTDOWN = `open(my $d, "<", $ARGV[0]) or die "$!\\n"; my $how = pack("I", 2);
ioctl($d, 0x8004587d, $how) or die "$!\\n"`

function tried(program: string, ...args: string[]): string | undefined {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? undefined : `${program}: ${error?.message ?? stderr.trim()}`
}

/** A disk of its own for one world, which can be filled, or lose its power. */
export class Disk {
  readonly folder: string
  private readonly image: string | undefined

  private constructor(folder: string, image: string | undefined) {
    this.folder = folder
    this.image = image
  }

  /** In memory and small: it can be filled. A text says why it cannot be had. */
  static small(folder: string, size: string): Disk | string {
    fs.mkdirSync(folder)
    const options = `size=${size},mode=0700`
    return (
      tried(MOUNT, '-t', 'tmpfs', '-o', options, 'tmpfs', folder) ?? new Disk(folder, undefined)
    )
  }

  /** ext4 on a loop device: its power can be cut. A text says why it cannot be had. */
  static journaled(folder: string): Disk | string {
    fs.mkdirSync(folder)
    const image = `${folder}.image`
    fs.writeFileSync(image, '')
    fs.truncateSync(image, 96 * 1024 * 1024)
    const why = tried(MKFS, '-q', '-F', image) ?? tried(MOUNT, '-o', 'loop', image, folder)
    if (why !== undefined) return why
    const disk = new Disk(folder, image)
    const cannot = disk.cutPower()
    if (cannot === undefined) return disk.powerUp()
    disk.close()
    return cannot
  }

  /** Leaves no room; returns how to give it back. */
  fill(): () => void {
    const file = join(this.folder, 'filler')
    const { bavail, bsize } = fs.statfsSync(this.folder)
    try {
      fs.writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize)))
    } catch {
      // As full as it gets.
    }
    return () => fs.rmSync(file, { force: true })
  }

  /** Whoever has files open there gets errors from now on. A text says why it cannot be done. */
  cutPower(): string | undefined {
    return tried(PERL, '-e', SHUTDOWN, this.folder)
  }

  /** Mounts what is left on the disk. All who used it must have ended. */
  powerUp(): this {
    execFileSync(UMOUNT, [this.folder])
    execFileSync(MOUNT, ['-o', 'loop', this.image!, this.folder])
    return this
  }

  close(): void {
    tried(UMOUNT, '--lazy', this.folder)
    if (this.image !== undefined) fs.rmSync(this.image, { force: true })
  }
}
