import { basename } from 'node:path'
import { type CodexTrust, codexTrust, TRUST_NEXT, UNTRUSTED } from '../../machine/codex_trust.ts'
import type { Store } from '../../stores/writer/store.ts'
import { keyFor } from '../../core/reasons/alert.ts'
import type { AgentConfig } from '../config/config.ts'

/** How long an answer of Codex counts: to ask it takes a second of a processor. */
const LOOK_AGAIN_MS = 10 * 60_000

/** Tells a person where Codex is started without a guard. */
export class TrustWatch {
  private readonly looked = new Map<string, number>()

  constructor(
    private readonly store: Store,
    private readonly env: NodeJS.ProcessEnv,
    private readonly say: (sentence: string) => void,
  ) {}

  /** An agent is about to be started in `cwd`. Nobody waits for this. */
  look({ command }: AgentConfig, cwd: string): void {
    const last_ms = this.looked.get(cwd) ?? Number.NEGATIVE_INFINITY
    const now_ms = performance.now()
    if (basename(command[0] ?? '') !== 'codex' || now_ms - last_ms < LOOK_AGAIN_MS) return
    this.looked.set(cwd, now_ms)
    codexTrust(cwd, this.env)
      .then((trust) => this.tell(cwd, trust))
      // A store in trouble: the next look tells it.
      .catch(() => this.looked.delete(cwd))
  }

  /** In the log, and as an event that becomes an alert, or ends one. */
  private async tell(folder: string, trust: CodexTrust): Promise<void> {
    if (trust === 'unknown') return
    if (trust === 'untrusted') this.say(`in ${folder}: ${UNTRUSTED}. ${TRUST_NEXT}`)
    await this.store.write((view) => {
      if (trust === 'trusted' && !view.get('alert', keyFor('hooks_untrusted', folder))) return
      const type = trust === 'trusted' ? 'hook.trusted' : 'hook.untrusted'
      view.record(type, { agent: 'leasehold' }, { folder })
    })
  }
}
