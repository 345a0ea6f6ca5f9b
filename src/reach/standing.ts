import { runVariables } from '../machine/detached.ts'
import { isOwnSecret } from './server_file.ts'

/**
 * The environment as those gave it who started us. A run has its token whatever a command of it
 * leaves out; and the secret of this login's own command line makes nobody what they are not.
 */
export function standing(given: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  const { LEASEHOLD_TOKEN: token, ...env } = given
  if (token && !isOwnSecret(folder, token)) return given
  return { ...env, ...runVariables(folder) }
}
