import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Timestamps of a file system are this coarse at most: a change after that has a later one. */
const TICK_MS = 50

export const fileAt = (path: string) => statSync(path, { throwIfNoEntry: false })

/** While a file is open, no other one has its device and inode. */
const isSame = (a: Stats | undefined, b: Stats | undefined) =>
  a?.ino === b?.ino && a?.dev === b?.dev

/**
 * Which files the connections of this process have open. SQLite goes on with them when others stand
 * at the path by now, in a store that nobody else sees; or, when only the side files are others,
 * beside writers that it does not know of. Looking never opens a file: to close one of SQLite's
 * would drop its locks.
 */
export class Opened {
  private readonly paths: string[]
  /** A side file that was not there yet is known when it comes. */
  private files: (Stats | undefined)[]
  private readonly folder: string | undefined
  /** The folder as it was when all files were last looked at; undefined if that proves nothing. */
  private quiet: Stats | undefined

  /** When a connection has read something: before, it has no side files. */
  constructor(path: string) {
    const real = realpathSync(path)
    this.paths = [path, `${real}-wal`, `${real}-shm`]
    this.folder = real === path ? dirname(path) : undefined
    this.files = this.look()
  }

  /**
   * Whether the database is the file that stood at the path before the connection was opened, if
   * one did. If not, nobody can say which of the two was opened.
   */
  isOf(before: Stats | undefined): boolean {
    return before === undefined || isSame(before, this.files[0])
  }

  /** Whether the files at the path are still those that were opened. */
  isInPlace(): boolean {
    const folder = this.folder === undefined ? undefined : fileAt(this.folder)
    const { quiet } = this
    // Nothing came into the folder or left it since: one look instead of three.
    if (folder && quiet?.mtimeMs === folder.mtimeMs && isSame(folder, quiet)) return true
    const now = this.look()
    if (now.some((each, i) => this.files[i] && !isSame(each, this.files[i]))) return false
    this.files = now
    this.quiet = folder && Date.now() - folder.mtimeMs > TICK_MS ? folder : undefined
    return true
  }

  /** Whether only the side files are others, so that what is in ours is nowhere else. */
  hasLostSides(): boolean {
    return !this.isInPlace() && isSame(fileAt(this.paths[0]!), this.files[0])
  }

  /** Whether another process has begun a side file in the place of ours. */
  hasRivals(): boolean {
    return this.paths.slice(1).some((path) => fileAt(path) !== undefined)
  }

  private look(): (Stats | undefined)[] {
    return this.paths.map(fileAt)
  }
}
