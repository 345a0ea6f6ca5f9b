import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { AgentProcess, expectSilent, repository, type Said } from './agents.ts'

/** Codex's ids are made from the time: these two began in the same second. */
const THREADS = {
  a: '019a8f00-0000-7000-8000-0000aaaaaaaa',
  b: '019a8f00-0000-7000-8000-0000bbbbbbbb',
}

describe('Codex', () => {
  const event = (session_id: string, cwd: string, more: object) => ({
    session_id,
    turn_id: 'turn-1',
    transcript_path: null,
    cwd,
    model: 'gpt-5-codex',
    permission_mode: 'default',
    ...more,
  })
  const patch = (text: string) => ({
    hook_event_name: 'PreToolUse',
    tool_name: 'apply_patch',
    tool_input: { command: `*** Begin Patch\n${text}\n*** End Patch` },
    tool_use_id: 'call_1',
  })

  test('is refused the files of a patch, both sides of a move', async () => {
    const { place, repo } = repository()
    const [a, b] = [new AgentProcess(place, repo), new AgentProcess(place, repo)]
    const ask = (who: AgentProcess, id: string, more: object) =>
      who.hook('codex', 'PreToolUse', event(id, repo, more))
    expectSilent(await ask(a, THREADS.a, patch('*** Update File: a.ts\n@@\n-a\n+b')))
    for (const text of ['*** Delete File: a.ts', '*** Update File: b.ts\n*** Move to: a.ts']) {
      const said = await ask(b, THREADS.b, patch(text))
      expect(said.code).toBe(2)
      expect(said.err).toContain('a.ts is reserved by codex:aaaaaaaa')
      expect(JSON.parse(said.out)).toMatchObject({
        hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' },
      })
    }
    const shell = { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_use_id: 'call_2' }
    const rm = await ask(b, THREADS.b, { ...shell, tool_input: { command: 'rm a.ts' } })
    expect(rm.code).toBe(2)
    // Of a turn's end it wants JSON, and after it the file is free.
    const stop = { hook_event_name: 'Stop', stop_hook_active: false, last_assistant_message: null }
    const stopped = await a.hook('codex', 'Stop', event(THREADS.a, repo, stop))
    expect(stopped).toMatchObject({ code: 0, out: '{}\n', err: '' })
    expectSilent(await ask(b, THREADS.b, patch('*** Delete File: a.ts')))
  })

  test('says a brief at the start, and may end a turn by notify', async () => {
    const { place, repo } = repository()
    const a = new AgentProcess(place, repo)
    const start = { hook_event_name: 'SessionStart', source: 'startup' }
    const said = await a.hook('codex', 'session-start', event(THREADS.a, repo, start))
    const { hookSpecificOutput } = JSON.parse(said.out)
    expect(hookSpecificOutput.additionalContext).toContain('You are codex:aaaaaaaa.')
    const turn = { type: 'agent-turn-complete', 'thread-id': THREADS.a, 'turn-id': '1', cwd: repo }
    const notified = await a.leasehold(`hook codex notify '${JSON.stringify(turn)}'`)
    expect(notified).toMatchObject({ code: 0, err: '' })
  })
})

describe('Cursor', () => {
  const common = (conversation_id: string, repo: string, hook_event_name: string) => ({
    conversation_id,
    generation_id: 'gen-1',
    model: 'claude-opus-4-7',
    hook_event_name,
    cursor_version: '3.7.21',
    workspace_roots: [repo],
    user_email: null,
    transcript_path: null,
  })
  const saysDeny = (said: Said, holder: string) => {
    expect(said.code).toBe(0)
    const { permission, user_message, agent_message } = JSON.parse(said.out)
    expect(permission).toBe('deny')
    expect(agent_message).toContain(`reserved by ${holder}`)
    expect(user_message).toBe(agent_message)
  }

  test('two conversations in one editor keep apart', async () => {
    const { place, repo } = repository()
    const editor = new AgentProcess(place, repo)
    const ask = (id: string, event: string, more: object) =>
      editor.hook('cursor', event, { ...common(id, repo, event), ...more })
    const write = {
      tool_name: 'Write',
      tool_input: { file_path: join(repo, 'a.ts'), content: 'x' },
      tool_use_id: 'abc123',
      cwd: repo,
    }
    const allowed = await ask('conv-a', 'preToolUse', write)
    expect(allowed).toMatchObject({ code: 0, out: '{}\n', err: '' })
    saysDeny(await ask('conv-b', 'preToolUse', write), 'cursor:conv-a')
    const shell = { command: 'sed -i s/a/b/ a.ts', cwd: repo, sandbox: false }
    saysDeny(await ask('conv-b', 'beforeShellExecution', shell), 'cursor:conv-a')
    const tool = { tool_name: 'Shell', tool_input: { command: 'rm a.ts', working_directory: repo } }
    saysDeny(await ask('conv-b', 'preToolUse', tool), 'cursor:conv-a')
    // What was written already can only be reported.
    const edited = { file_path: join(repo, 'a.ts'), edits: [] }
    const late = await ask('conv-b', 'afterFileEdit', edited)
    expect(late).toMatchObject({ code: 0, out: '{}\n' })
    expect(late.err).toContain('a.ts is reserved by cursor:conv-a')
    const end = { session_id: 'conv-a', reason: 'user_close', duration_ms: 1 }
    expect((await ask('conv-a', 'sessionEnd', end)).out).toBe('{}\n')
    expect((await ask('conv-b', 'preToolUse', write)).out).toBe('{}\n')
  })

  test('run through the hooks of Claude Code as well, it is one agent', async () => {
    const { place, repo } = repository()
    const editor = new AgentProcess(place, repo)
    const ask = (hooks: string, id: string) => {
      const tool_input = { file_path: join(repo, 'a.ts'), content: 'x' }
      const input = { ...common(id, repo, 'PreToolUse'), tool_name: 'Write', tool_input, cwd: repo }
      return editor.hook(hooks, 'pre-tool-use', input)
    }
    expect(await ask('cursor', 'conv-a')).toMatchObject({ code: 0 })
    expect(await ask('claude', 'conv-a')).toMatchObject({ code: 0, out: '', err: '' })
    expect(await ask('claude', 'conv-b')).toMatchObject({ code: 2 })
  })

  test('a new one is told who it is, and its later hooks too', async () => {
    const { place, repo } = repository()
    const editor = new AgentProcess(place, repo)
    const start = { session_id: 'conv-a', is_background_agent: false, composer_mode: 'agent' }
    const input = { ...common('conv-a', repo, 'sessionStart'), ...start }
    const { additional_context, env } = JSON.parse(
      (await editor.hook('cursor', 'sessionStart', input)).out,
    )
    expect(additional_context).toContain('You are cursor:conv-a.')
    expect(env).toEqual({ LEASEHOLD_AGENT: 'cursor:conv-a' })
    const prompt = { ...common('conv-a', repo, 'beforeSubmitPrompt'), prompt: 'x', attachments: [] }
    const said = await editor.hook('cursor', 'beforeSubmitPrompt', prompt, env)
    expect(said).toMatchObject({ code: 0, out: '{"continue":true}\n', err: '' })
  })
})
