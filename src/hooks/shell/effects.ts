/** What a command would change on disk, as far as its text says. Paths are absolute. */
export interface Effects {
  writes: Target[]
  /**
   * What would be changed other than in its content: its mode or owner, or by another name (a
   * link), through which it is written later. Of importance only for what Leasehold keeps.
   */
  touches: Target[]
  /** What `git add` would stage. */
  added: string[]
  /** Commits that would be made. */
  commits: GitCommit[]
  /** Folders from which something would be pushed. */
  pushes: string[]
  /** What git would take back or throw away, of all that is not committed. */
  discards: Discard[]
  patches: Patch[]
}

export interface Target {
  path: string
  /** `tree` is a folder with all that is in it; a `glob` is what the shell would look for. */
  kind: 'file' | 'tree' | 'glob'
  /** It would be gone, with all that is in it. */
  removes?: boolean
}

export interface GitCommit {
  dir: string
  /** `-a`: every tracked file that changed, not only what is staged. */
  all: boolean
  /** Named on the command line: these are committed, staged or not. */
  paths: string[]
  /** What `git add` would stage before it, in the same script. */
  added: string[]
}

export interface Discard {
  dir: string
  /** Changes of tracked files, files that git does not know, or both; or all that it knows. */
  what: 'tracked' | 'untracked' | 'all' | 'known'
  /** Only what these patterns of git match, as it reads them in `dir`; else the whole checkout. */
  matching?: string[] | undefined
  /** Files that git ignores go too, but for those that are called so. */
  ignored?: { but: string[] } | undefined
}

/** A patch in a file, or written out in the command; `strip` leading folders are not meant. */
export interface Patch {
  dir: string
  file?: string
  text?: string
  strip: number
  /** How it is written: as a unified diff, or in the format of `apply_patch`. */
  format: 'diff' | 'envelope'
}

export function noEffects(): Effects {
  return { writes: [], touches: [], added: [], commits: [], pushes: [], discards: [], patches: [] }
}

/** Where a command stands while a script is read. */
export interface ShellPlace {
  /** Undefined once only a run could tell. */
  cwd: string | undefined
  home: string
  /** Variables that a wrapper sets for the command: `env A=b`. */
  set?: [name: string, value: Argument][]
  isFolder(path: string): boolean
  isThere(path: string): boolean
}

/** An argument; undefined where only a run could tell: then it may be one of a few texts. */
export interface Argument {
  text: string | undefined
  glob: boolean
  maybe?: readonly string[]
}

/** What stands on the standard input of a command, as far as the script says. */
export interface StandardInput {
  file?: string
  text?: string
  /** Words of the commands before it in the pipe. */
  maybe?: readonly string[]
}

/** One simple command: its name, its arguments, and what stands on its standard input. */
export interface Invocation {
  name: string
  args: Argument[]
  place: ShellPlace
  input: StandardInput
}

/** Reads a script that a command hands over, with what `$1` and the like are in it. */
export type RunScript = (text: string, place: ShellPlace, given?: Argument[]) => void
