import type { Caller } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { uniqueId } from '../stores/digest.ts'
import { stateFolder } from '../stores/place.ts'
import { type Daemon, findDaemon } from '../stores/server_file.ts'
import { Unanswered } from '../stores/silence.ts'
import { askBare } from '../stores/wire.ts'

/** These change nothing: they may be done twice, now and when a paused daemon goes on. */
const READS = /\.(?:check|list|status)$/

/** Asks the daemon if one answers, else the store itself. */
export class Asking {
  readonly folder: string
  /** Whether other machines use the same store. */
  readonly isShared: boolean
  private readonly env: NodeJS.ProcessEnv
  private readonly cwd: string
  private daemon: Daemon | undefined | null = null
  private direct: ReturnType<typeof import('./direct_store.ts').openDirect> | undefined

  constructor(env: NodeJS.ProcessEnv, cwd: string) {
    this.env = env
    this.cwd = cwd
    this.folder = stateFolder(env, cwd)
    this.isShared = /^postgres(?:ql)?:/.test(env['LEASEHOLD_STORE'] ?? '')
  }

  async ask(name: string, input: Record<string, unknown>, caller: Caller): Promise<unknown> {
    if (this.daemon === null) this.daemon = findDaemon(this.env, await this.serverFolder())
    const { daemon } = this
    const asked = READS.test(name) ? input : { request_id: uniqueId(), ...input }
    if (daemon) {
      try {
        return await askBare(daemon, name, asked, caller)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        if (!daemon.isOurs) throw new Refusal('unavailable', `No server answers at ${daemon.url}`)
        this.daemon = undefined
      }
    }
    this.direct ??= (await import('./direct_store.ts')).openDirect(this.env, this.cwd)
    return this.direct.ask(name, asked, caller)
  }

  /** Where a daemon would say that it is. Only a store elsewhere takes more than a look to find. */
  private async serverFolder(): Promise<string> {
    if (!this.env['LEASEHOLD_STORE'] || this.isShared) return this.folder
    return (await import('./direct_store.ts')).folderIn(this.env, this.cwd)
  }

  async close(): Promise<void> {
    await this.direct?.close()
  }
}
