import { basename } from 'node:path'
import { codexTrust, TRUST_NEXT, UNTRUSTED } from '../../machine/codex_trust.ts'
import type { AgentConfig } from '../config/config.ts'

/** How long an answer of Codex counts: to ask it takes a second of a processor. */
const LOOK_AGAIN_MS = 10 * 60_000

/** Tells a person where Codex is started without a guard. */
export class TrustWatch {
  private readonly looked = new Map<string, number>()

  constructor(
    private readonly env: NodeJS.ProcessEnv,
    private readonly say: (sentence: string) => void,
  ) {}

  /** An agent is about to be started in `cwd`. Nobody waits for this. */
  look({ command }: AgentConfig, cwd: string): void {
    const last_ms = this.looked.get(cwd) ?? Number.NEGATIVE_INFINITY
    const now_ms = performance.now()
    if (basename(command[0] ?? '') !== 'codex' || now_ms - last_ms < LOOK_AGAIN_MS) return
    this.looked.set(cwd, now_ms)
    void codexTrust(cwd, this.env).then((trust) => {
      if (trust === 'untrusted') this.say(`in ${cwd}: ${UNTRUSTED}. ${TRUST_NEXT}`)
    })
  }
}
