import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MARK, newMark } from '../machine/group.ts'
import type { Place } from '../stores/open.ts'

/** What a program of ours needs from the environment to run git as this login does. */
const NAMES = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LEASEHOLD_STOP_AT', 'LEASEHOLD_PLANT']

interface ProgramAsk {
  name: 'runner' | 'keeper'
  /** What it has to know. It goes through a pipe: arguments can be seen by others. */
  spec: object
  env: NodeJS.ProcessEnv
  /** Set besides. */
  more?: Record<string, string>
  /** It runs git: whoever comes after it must be able to stop what it left. */
  isMarked: boolean
}

/** Starts a program of ours, leading a group of its own: it ends its work even when we die. */
export function startProgram(
  { name, spec, env, more, isMarked }: ProgramAsk,
  stdout: 'pipe' | 'ignore',
): ChildProcess {
  const program = fileURLToPath(new URL(`${name}.cjs`, import.meta.url))
  const known = NAMES.flatMap((each) => (env[each] === undefined ? [] : [[each, env[each]]]))
  const child = spawn(process.execPath, [program], {
    detached: true,
    env: { ...Object.fromEntries(known), ...more, ...(isMarked && { [MARK]: newMark() }) },
    stdio: ['pipe', stdout, 'ignore'],
  })
  child.on('error', () => undefined)
  // None where no descriptor was left. One that is gone before it has read this started nothing.
  child.stdin?.on('error', () => undefined).end(JSON.stringify(spec))
  return child
}

/** Where a program of ours finds the daemon, or the store; it stands in no folder of ours. */
export function placeIn({ kind, folder, path, url }: Place): Record<string, string> {
  return { LEASEHOLD_DIR: folder, LEASEHOLD_STORE: url ?? `${kind}:${path}` }
}
