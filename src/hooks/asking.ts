import type { Caller } from '../core/caller.ts'
import { newRequestId } from '../machine/digest.ts'
import { stateFolder } from '../machine/place.ts'
import type { AnswerOf, InputOf, RegisteredName } from '../operations/registry.ts'
import type { ReachAsk } from '../reach/ask.ts'
import { askBriefly } from '../reach/http.ts'
import { nobodyAnswers, Reach } from '../reach/reach.ts'
import { type Daemon, findDaemon } from '../reach/server_file.ts'
import { folderIn } from '../stores/place.ts'
import { isPostgres } from '../stores/postgres/address.ts'

/** These change nothing: they may be done twice, now and when a paused daemon goes on. */
const READS = /\.(?:check|list|status)$/

/** Asks for a hook, which has no time to ask a daemon twice that did not answer once. */
export class Asking {
  readonly folder: string
  /** Whether other machines use the same store. */
  readonly isShared: boolean
  private readonly reach: Reach<ReachAsk>
  private daemon: Daemon | undefined | null = null

  /** Of the folder that stands for `cwd`, unless another is given. */
  constructor(given: NodeJS.ProcessEnv, cwd: string, folder?: string) {
    const env = folder === undefined ? given : { ...given, LEASEHOLD_DIR: folder }
    this.folder = stateFolder(env, cwd)
    this.isShared = isPostgres(env['LEASEHOLD_STORE'] ?? '')
    this.reach = new Reach({
      find: (again = false) => {
        if (this.daemon === null || again) this.daemon = findDaemon(env, folderIn(env, cwd))
        return this.daemon
      },
      send: askBriefly,
      open: async () => (await import('../reach/direct.ts')).openDirect(env, cwd),
      passBy: () => (this.daemon = undefined),
      giveUp: (daemon, why) => nobodyAnswers(daemon, why),
    })
  }

  ask<N extends RegisteredName>(name: N, input: InputOf<N>, caller: Caller): Promise<AnswerOf<N>> {
    const asked = READS.test(name) ? input : { request_id: newRequestId(), ...input }
    return this.reach.ask({ operation: { name }, input: asked, caller }) as Promise<AnswerOf<N>>
  }

  close(): Promise<void> {
    return this.reach.close()
  }
}
