import { Refusal } from '../core/refusal.ts'

/** What this login is called. One that passwd does not know (`docker run --user`) is a number. */
export function loginName(): string {
  try {
    return process.getBuiltinModule('node:os').userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}

/** `HOME`, or what passwd says, or `otherwise`. Without that, refuses (`invalid`) for none. */
export function homeFolder(env: NodeJS.ProcessEnv, otherwise?: string): string {
  try {
    return env['HOME'] || process.getBuiltinModule('node:os').homedir()
  } catch {
    if (otherwise !== undefined) return otherwise
    throw new Refusal('invalid', 'This login has no home folder, and HOME is not set', {
      next: 'Set HOME, or say where the state lives: LEASEHOLD_DIR=/some/folder',
    })
  }
}
