import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Call, PLAY, type Said, sendJson, stepIn, WIRES } from './wires.ts'

/** One answer of the scripted model. */
export interface Step {
  text?: string
  calls?: Call[]
  /** Held back until the trial lets it go; by then the client has done all that came before. */
  gate?: Gate
  /** Answered with this HTTP status instead. */
  fails?: number
}

/** Where a script waits for its trial. */
export class Gate {
  isReached = false
  #open!: () => void
  readonly opened = new Promise<void>((resolve) => (this.#open = resolve))

  open = () => this.#open()
}

/** What the model was asked at one step of a script. */
interface Asked {
  at: string
  script: string
  step: number
  /** Since the prompt that named the script. */
  said: Said[]
  /** All that the client sent, its instructions included. */
  body: string
}

/**
 * A model on loopback that says what its scripts say. Real clients take it for their provider.
 * Which step is next is read from the conversation itself, so a client may ask again, resume, or
 * start subagents whose prompts name scripts of their own.
 */
export class ScriptedModel {
  readonly scripts = new Map<string, Step[]>()
  readonly asked: Asked[] = []
  readonly others: string[] = []
  readonly #server = createServer(
    (ask, out) => void this.#serve(ask, out).catch(() => out.destroy()),
  )

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    for (const steps of this.scripts.values()) for (const { gate } of steps) gate?.open()
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** What came of the calls of step `step`, as the model reads it; undefined if it never came. */
  result(script: string, step: number): string | undefined {
    const later = this.asked.find((each) => each.script === script && each.step > step)
    const results = later?.said.filter(({ kind, id }) => kind === 'result' && stepIn(id) === step)
    return results?.map(({ text }) => text).join('\n')
  }

  async #serve(ask: IncomingMessage, out: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of ask) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const path = (ask.url ?? '').split('?')[0]!
    const wire = WIRES.find((each) => ask.method === 'POST' && each.matches(path))
    if (!wire) {
      this.others.push(`${ask.method} ${ask.url}`)
      return sendJson(out, path.endsWith('/models') ? { data: [], models: [] } : {}, 200)
    }
    const body: unknown = JSON.parse(text)
    const { script, step, said } = place(wire.read(body))
    const steps = script === undefined ? undefined : this.scripts.get(script)
    // Titles and summaries are asked for with the person's words in them, but without tools.
    if (script === undefined || !steps || !wire.hasTools(body)) {
      return wire.answer(out, body, path, { text: 'ok', calls: [], step: 0 })
    }
    this.asked.push({ at: new Date().toISOString(), script, step, said, body: text })
    const { calls = [], text: words, gate, fails } = steps[step] ?? { text: 'That is all.' }
    if (gate) gate.isReached = true
    await gate?.opened
    if (fails !== undefined) {
      const error = { type: 'invalid_request_error', message: 'scripted', code: fails }
      return sendJson(out, { type: 'error', error }, fails)
    }
    const reply = { calls, step, ...(words !== undefined && { text: words }) }
    wire.answer(out, body, path, reply)
  }
}

/** What Codex says on a terminal to a model that answers before it is ready: ask again. */
const NOT_READY = /^(?:No usable execution environment|unsupported call)/
/** Somebody who is not ready after that many has not got what is asked for. */
const MOST_EARLY = 50

/** What the prompt of a run says whose work could not be landed: the model does something else. */
const BACK = /What was done before came back/

/** The script that a conversation plays, by the last prompt that names one, and its next step. */
function place(all: Said[]): { script: string | undefined; step: number; said: Said[] } {
  const at = all.findLastIndex(({ kind, text }) => kind === 'user' && PLAY.test(text))
  const named = [...(all[at]?.text ?? '').matchAll(new RegExp(PLAY, 'g'))].at(-1)?.[1]
  const script = named && BACK.test(all[at]!.text) ? `${named}_again` : named
  const said = all.slice(at + 1)
  const steps = said.flatMap(({ kind, id }) => (kind === 'call' ? (stepIn(id) ?? []) : []))
  const last = Math.max(-1, ...steps)
  const results = said.filter(({ kind, id }) => kind === 'result' && stepIn(id) === last)
  const isEarly = NOT_READY.test(results.at(-1)?.text ?? '') && results.length < MOST_EARLY
  return { script, step: isEarly ? last : last + 1, said }
}
