/** What a command would change on disk, as far as its text says. Paths are absolute. */
export interface Effects {
  writes: Target[]
  /** What would be given another name, by a link: what is written to that is written to these. */
  links: string[]
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
  /** Changes of tracked files, files that git does not know, or both. */
  what: 'tracked' | 'untracked' | 'all'
  /** Only what is in `dir`; else the whole checkout. */
  below: boolean
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
  return { writes: [], links: [], added: [], commits: [], pushes: [], discards: [], patches: [] }
}

/** Where a command stands while a script is read. */
export interface ShellPlace {
  /** Undefined once only a run could tell. */
  cwd: string | undefined
  home: string
  isFolder(path: string): boolean
  isThere(path: string): boolean
}

/** An argument; undefined where only a run could tell. */
export interface Argument {
  text: string | undefined
  glob: boolean
}

/** One simple command: its name, its arguments, and what stands on its standard input. */
export interface Invocation {
  name: string
  args: Argument[]
  place: ShellPlace
  input: { file?: string; text?: string }
}
