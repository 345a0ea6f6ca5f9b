import type { ServerResponse } from 'node:http'

/** One thing in a conversation, whichever wire it came by. */
export interface Said {
  kind: 'user' | 'call' | 'result' | 'other'
  text: string
  /** Of a call, and of what came of it. */
  id?: string
}

/** One tool that the model asks for. */
export interface Call {
  tool: string
  input: unknown
  /** A tool whose input is a plain text, not JSON. */
  isFreeform?: boolean
  /** Where a client keeps the tools of one MCP server together. */
  namespace?: string
}

/** What the model answers: a text ends the turn, calls keep it going. */
export interface Reply {
  text?: string
  calls: Call[]
  /** The number of this answer in its script; ids of calls carry it. */
  step: number
}

// oxlint-disable-next-line typescript/no-explicit-any -- protocols of others, looked at in places
type Json = any

/** How a client talks to its model. */
export interface Wire {
  matches(path: string): boolean
  /** The conversation so far, oldest first. */
  read(body: Json): Said[]
  hasTools(body: Json): boolean
  answer(out: ServerResponse, body: Json, path: string, reply: Reply): void
}

let serial = 0
const callId = (step: number, place: number) => `call_${step}_${place}_${(serial += 1)}`

/** The step that a call with this id was part of. */
export const stepIn = (id: string | undefined) => {
  const found = /call_(\d+)_\d+_/.exec(id ?? '')
  return found ? Number(found[1]) : undefined
}

function plain(content: Json): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map((each) => each.text ?? plain(each)).join('\n')
  return content === undefined || content === null ? '' : JSON.stringify(content)
}

export function sendJson(out: ServerResponse, value: unknown, status = 200): void {
  out.writeHead(status, { 'content-type': 'application/json' })
  out.end(JSON.stringify(value))
}

/** Sends events one after another; those of some wires have names. */
function sendEvents(out: ServerResponse, events: [name: string, data: object][]): void {
  out.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const [name, data] of events) {
    out.write(`${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)
  }
}

const named = (type: string, more: object): [string, object] => [type, { type, ...more }]

/** Anthropic's Messages: Claude Code. */
const messages: Wire = {
  matches: (path) => path.endsWith('/v1/messages'),
  hasTools: (body) => (body.tools?.length ?? 0) > 0,
  read: (body) =>
    body.messages.flatMap(({ role, content }: Json): Said[] => {
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
      return blocks.map((block: Json): Said => {
        if (block.type === 'tool_use') return { kind: 'call', text: block.name, id: block.id }
        if (block.type === 'tool_result') {
          return { kind: 'result', text: plain(block.content), id: block.tool_use_id }
        }
        return { kind: role === 'user' ? 'user' : 'other', text: block.text ?? '' }
      })
    }),
  answer(out, body, _, { text, calls, step }) {
    const content = [
      ...(text === undefined ? [] : [{ type: 'text', text }]),
      ...calls.map(({ tool, input }, place) => {
        return { type: 'tool_use', id: callId(step, place), name: tool, input }
      }),
    ]
    const stop_reason = calls.length > 0 ? 'tool_use' : 'end_turn'
    const message = {
      ...{ id: `msg_${(serial += 1)}`, type: 'message', role: 'assistant', model: body.model },
      ...{
        content,
        stop_reason,
        stop_sequence: null,
        usage: { input_tokens: 9, output_tokens: 9 },
      },
    }
    if (!body.stream) return sendJson(out, message)
    const blocks = content.flatMap((block: Json, index) => {
      const isText = block.type === 'text'
      const start = isText ? { type: 'text', text: '' } : { ...block, input: {} }
      const delta = isText
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      return [
        named('content_block_start', { index, content_block: start }),
        named('content_block_delta', { index, delta }),
        named('content_block_stop', { index }),
      ]
    })
    const started = { ...message, content: [], stop_reason: null }
    const ended = { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } }
    sendEvents(out, [
      named('message_start', { message: started }),
      ...blocks,
      named('message_delta', ended),
      named('message_stop', {}),
    ])
    out.end()
  },
}

const ROLES: Record<string, Said['kind']> = { user: 'user' }

/** OpenAI's Responses: Codex. */
const responses: Wire = {
  matches: (path) => path.endsWith('/responses'),
  hasTools: (body) => (body.tools?.length ?? 0) > 0,
  read: (body) =>
    body.input.map((item: Json): Said => {
      if (String(item.type).endsWith('_call_output')) {
        return { kind: 'result', text: plain(item.output), id: item.call_id }
      }
      if (String(item.type).endsWith('_call'))
        return { kind: 'call', text: item.name, id: item.call_id }
      // A subagent's task comes in a message of its own kind, and so does its report.
      const isTask = item.type === 'agent_message' && JSON.stringify(item).includes('NEW_TASK')
      const content = (item.content ?? []).map?.(
        (each: Json) => each.text ?? each.encrypted_content,
      )
      const text = content ? content.join('\n') : plain(item.content)
      return { kind: isTask ? 'user' : (ROLES[item.role] ?? 'other'), text }
    }),
  answer(out, body, _, { text, calls, step }) {
    const spoken = { type: 'message', id: `msg_${(serial += 1)}`, role: 'assistant' }
    const content = [{ type: 'output_text', text, annotations: [] }]
    const output: Json[] = [
      ...(text === undefined ? [] : [{ ...spoken, status: 'completed', content }]),
      ...calls.map(({ tool, input, isFreeform, namespace }, place) => {
        const call_id = callId(step, place)
        const common = { call_id, name: tool, status: 'completed' }
        return isFreeform
          ? { ...common, type: 'custom_tool_call', id: `ctc_${serial}`, input }
          : {
              ...common,
              ...{ type: 'function_call', id: `fc_${serial}`, arguments: JSON.stringify(input) },
              ...(namespace !== undefined && { namespace }),
            }
      }),
    ]
    const usage = { input_tokens: 9, output_tokens: 9, total_tokens: 18 }
    const id = `resp_${(serial += 1)}`
    const response = {
      id,
      object: 'response',
      status: 'completed',
      model: body.model,
      output,
      usage,
    }
    const begun = { ...response, status: 'in_progress', output: [], usage: null }
    sendEvents(out, [
      named('response.created', { response: begun }),
      ...output.flatMap((item, output_index) => [
        named('response.output_item.added', { output_index, item }),
        named('response.output_item.done', { output_index, item }),
      ]),
      named('response.completed', { response }),
    ])
    out.end()
  },
}

/** OpenAI's Chat Completions: opencode, Copilot CLI. */
const chat: Wire = {
  matches: (path) => path.endsWith('/chat/completions'),
  hasTools: (body) => (body.tools?.length ?? 0) > 0,
  read: (body) =>
    body.messages.flatMap(({ role, content, tool_calls, tool_call_id }: Json): Said[] => {
      if (role === 'tool') return [{ kind: 'result', text: plain(content), id: tool_call_id }]
      const calls = (tool_calls ?? []).map((each: Json) => {
        return { kind: 'call', text: each.function.name, id: each.id }
      })
      return [{ kind: ROLES[role] ?? 'other', text: plain(content) }, ...calls]
    }),
  answer(out, body, _, { text, calls, step }) {
    const base = { id: `chat_${(serial += 1)}`, created: 0, model: body.model }
    const tool_calls = calls.map(({ tool, input }, index) => {
      const asked = { name: tool, arguments: JSON.stringify(input) }
      return { index, id: callId(step, index), type: 'function', function: asked }
    })
    const said = {
      ...{ role: 'assistant', content: text ?? null },
      ...(calls.length > 0 && { tool_calls }),
    }
    const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop'
    const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 }
    const chunk = (delta: object, end: string | null, more = {}): [string, object] => {
      const choices = [{ index: 0, delta, finish_reason: end }]
      return ['', { ...base, object: 'chat.completion.chunk', choices, ...more }]
    }
    if (!body.stream) {
      const choices = [{ index: 0, message: said, finish_reason }]
      return sendJson(out, { ...base, object: 'chat.completion', choices, usage })
    }
    sendEvents(out, [chunk(said, null), chunk({}, finish_reason, { usage })])
    out.end('data: [DONE]\n\n')
  },
}

/** Google's: Gemini CLI. It gives no ids back, so answers with calls are counted. */
const gemini: Wire = {
  matches: (path) => /:(?:streamG|g)enerateContent$/.test(path),
  hasTools: (body) => (body.tools?.length ?? 0) > 0,
  read: (body) => {
    let step = -1
    return body.contents.flatMap(({ role, parts }: Json): Said[] => {
      const isModel = role === 'model'
      if (isModel && parts.some((part: Json) => part.functionCall)) step += 1
      return parts.map((part: Json): Said => {
        if (PLAY.test(part.text ?? '') && !isModel) step = -1
        const id = `call_${step}_0_0`
        if (part.functionCall) return { kind: 'call', text: part.functionCall.name, id }
        if (part.functionResponse) {
          return { kind: 'result', text: JSON.stringify(part.functionResponse.response), id }
        }
        return { kind: isModel ? 'other' : 'user', text: part.text ?? '' }
      })
    })
  },
  answer(out, _, path, { text, calls }) {
    const asked = calls.map(({ tool, input }) => ({ functionCall: { name: tool, args: input } }))
    const parts = [...(text === undefined ? [] : [{ text }]), ...asked]
    const answer = {
      candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 9, totalTokenCount: 18 },
    }
    if (!path.includes(':stream')) return sendJson(out, answer)
    sendEvents(out, [['', answer]])
    out.end()
  },
}

/** How a prompt names the script that the model plays. */
export const PLAY = /\[play (\w+)\]/

export const WIRES: Wire[] = [messages, responses, chat, gemini]
