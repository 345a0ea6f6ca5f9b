import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'

/** Programs of the system, where it has them; no package brings them. */
const [MOUNT, UMOUNT, MKFS] = ['mount', 'umount', 'mkfs.ext4'] as const
const [PERL, SYNC] = ['perl', 'sync'] as const

/** Ends a file system as a power cut does: what was not synced is gone (EXT4_IOC_SHUTDOWN, 2). */
const SHUTDOWN = `open(my $d, "<", $ARGV[0]) or die "$!\\n"; my $how = pack("I", 2);
ioctl($d, 0x8004587d, $how) or die "$!\\n"`

function tried(program: string, ...args: string[]): string | undefined {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? undefined : `${program}: ${error?.message ?? stderr.trim()}`
}

const memoryAt = (folder: string, size: string) =>
  tried(MOUNT, '-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', folder)

/** A disk of its own for one world, which can be filled, or lose its power. */
export class Disk {
  private readonly image: string | undefined
  /**
   * The file system could not write its journal and takes nothing any more. What it kept of its own
   * tables is then anybody's guess: nothing on that disk is promised once it is mounted anew.
   */
  hasGivenUp = false
  /** A small disk in memory, if the image lies there. */
  private readonly below: string | undefined

  private constructor(
    readonly folder: string,
    image?: string,
    below?: string,
  ) {
    this.image = image
    this.below = below
  }

  /** In memory and small: it can be filled. A text says why it cannot be had. */
  static small(folder: string, size: string): Disk | string {
    fs.mkdirSync(folder)
    return memoryAt(folder, size) ?? new Disk(folder)
  }

  /** ext4 on a loop device: its power can be cut. A text says why it cannot be had. */
  static journaled(folder: string): Disk | string {
    return Disk.onImage(folder, `${folder}.image`)
  }

  /**
   * The same, with an image that lies on a disk too small for it: when that is full, writes end in
   * I/O errors. A text says why it cannot be had.
   */
  static failing(folder: string): Disk | string {
    const below = `${folder}.below`
    fs.mkdirSync(below)
    const why = memoryAt(below, '64m')
    return why ?? Disk.onImage(folder, join(below, 'image'), below)
  }

  private static onImage(folder: string, image: string, below?: string): Disk | string {
    fs.mkdirSync(folder)
    fs.writeFileSync(image, '')
    fs.truncateSync(image, 192 * 1024 * 1024)
    const why = tried(MKFS, '-q', '-F', image) ?? tried(MOUNT, '-o', 'loop', image, folder)
    if (why !== undefined) return why
    const disk = new Disk(folder, image, below)
    const cannot = disk.cutPower() ?? disk.powerUp()
    if (cannot === undefined) {
      fs.chmodSync(folder, 0o755)
      return disk
    }
    disk.close()
    return cannot
  }

  /** Makes it read-only, or takes that back. Nobody may have a file of it open for writing. */
  readOnly(is: boolean): string | undefined {
    return tried(MOUNT, '-o', `remount,${is ? 'ro' : 'rw'}`, this.folder)
  }

  /** Leaves no room, here or below; returns how to give it back. */
  fill(): () => void {
    const place = this.below ?? this.folder
    const file = join(place, 'filler')
    const { bavail, bsize } = fs.statfsSync(place)
    try {
      fs.writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize)))
    } catch {
      // As full as it gets.
    }
    return () => fs.rmSync(file, { force: true })
  }

  /** Whether it takes files. If not, it has given up. */
  isWritable(): boolean {
    try {
      fs.writeFileSync(join(this.folder, 'probe'), '')
    } catch {
      this.hasGivenUp = true
    }
    return !this.hasGivenUp
  }

  /** What was put there without a thought for the power is safe from now on. */
  sync(): void {
    fs.chmodSync(this.folder, 0o755)
    execFileSync(SYNC, ['-f', this.folder])
  }

  /** Whoever has files open there gets errors from now on. A text says why it cannot be done. */
  cutPower(): string | undefined {
    return tried(PERL, '-e', SHUTDOWN, this.folder)
  }

  /** Mounts what is left on the disk. A text says why not: somebody may still be on it. */
  powerUp(): string | undefined {
    return tried(UMOUNT, this.folder) ?? tried(MOUNT, '-o', 'loop', this.image!, this.folder)
  }

  close(): void {
    tried(UMOUNT, '--lazy', this.folder)
    if (this.image !== undefined) fs.rmSync(this.image, { force: true })
    if (this.below !== undefined) tried(UMOUNT, '--lazy', this.below)
  }
}
