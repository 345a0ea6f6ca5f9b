import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Client, Place } from './client.ts'
import { trustCodex } from './codex_trust.ts'
import type { Call } from './wires.ts'

const MACHINE = `${process.platform}-${process.arch}`
const KEY = 'scripted-key'
const urlOf = ({ port }: Place) => `http://127.0.0.1:${port}`

function put(file: string, text: string | object): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof text === 'string' ? text : JSON.stringify(text, undefined, 1))
}

const CLAUDE_FREE = '--dangerously-skip-permissions'

const claude: Client = {
  kind: 'claude',
  name: 'Claude Code',
  npm: '@anthropic-ai/claude-code',
  version: '2.1.325',
  program: `@anthropic-ai/claude-code-${MACHINE}/claude`,
  env: (world) => ({
    ANTHROPIC_BASE_URL: urlOf(world),
    ANTHROPIC_API_KEY: KEY,
    // As with Anthropic's own server, it would load tools when they are wanted.
    ENABLE_TOOL_SEARCH: 'false',
    // Else it refuses to permit everything to root, which is who runs it in a container.
    IS_SANDBOX: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
  loading: {
    env: { ENABLE_TOOL_SEARCH: 'true' },
    load: (tools) => {
      const names = tools.map((tool) => `mcp__leasehold__${tool}`)
      return { tool: 'ToolSearch', input: { query: `select:${names.join(',')}`, max_results: 5 } }
    },
  },
  prepare: ({ home, repo }) => {
    const seen = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true }
    put(join(home, '.claude.json'), {
      hasCompletedOnboarding: true,
      bypassPermissionsModeAccepted: true,
      customApiKeyResponses: { approved: [KEY], rejected: [] },
      projects: { [repo]: { ...seen, enabledMcpjsonServers: ['leasehold'] } },
    })
  },
  once: (prompt) => ['-p', prompt, CLAUDE_FREE],
  usual: (prompt) => ['-p', prompt, '--permission-mode', 'acceptEdits'],
  named: {
    begin: (prompt, id) => ['-p', prompt, '--session-id', id, CLAUDE_FREE],
    idIn: () => undefined,
    resume: (prompt, id) => ['-p', prompt, '--resume', id, CLAUDE_FREE],
  },
  typed: (prompt) => [prompt, CLAUDE_FREE],
  plug: (folder) =>
    `claude plugin marketplace add ${folder} && claude plugin install leasehold@leasehold`,
  words: ({ repo }) => ({
    read: (path) => ({ tool: 'Read', input: { file_path: join(repo, path) } }),
    edit: (path, old_string, new_string) => ({
      tool: 'Edit',
      input: { file_path: join(repo, path), old_string, new_string },
    }),
    write: (path, content) => ({ tool: 'Write', input: { file_path: join(repo, path), content } }),
    shell: (command) => ({ tool: 'Bash', input: { command, description: 'scripted' } }),
    mcp: (tool, input) => ({ tool: `mcp__leasehold__${tool}`, input }),
    subagent: (script) => {
      const task = { description: 'scripted', prompt: `[play ${script}] go` }
      const input = { ...task, subagent_type: 'general-purpose', run_in_background: false }
      return [{ calls: [{ tool: 'Agent', input }] }]
    },
  }),
}

const patch = (...lines: string[]): Call => ({
  tool: 'apply_patch',
  input: ['*** Begin Patch', ...lines, '*** End Patch', ''].join('\n'),
  isFreeform: true,
})
const plus = (text: string) =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `+${line}`)
/** What a person says on its screen once; `codex exec` never asks. */
const CODEX_TRUST = '--dangerously-bypass-hook-trust'
const CODEX_FREE = ['--dangerously-bypass-approvals-and-sandbox', CODEX_TRUST]

const codex: Client = {
  kind: 'codex',
  name: 'Codex',
  npm: '@openai/codex',
  version: '0.166.0',
  program: '@openai/codex/bin/codex.js',
  env: () => ({ OPENAI_API_KEY: KEY }),
  prepare: (world) => {
    const text = `model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
multi_agent_v2 = true
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[model_providers.scripted]
name = "scripted"
base_url = "${urlOf(world)}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[projects."${world.repo}"]
trust_level = "trusted"
`
    put(join(world.home, '.codex/config.toml'), text)
  },
  once: (prompt) => ['exec', ...CODEX_FREE, prompt],
  usual: (prompt) => ['exec', '--sandbox', 'workspace-write', CODEX_TRUST, prompt],
  named: {
    begin: (prompt) => ['exec', ...CODEX_FREE, prompt],
    idIn: (printed) => /^session id: (\S+)/m.exec(printed)?.[1],
    resume: (prompt, id) => ['exec', 'resume', id, ...CODEX_FREE, prompt],
  },
  typed: (prompt) => [...CODEX_FREE, prompt],
  trust: trustCodex,
  shared: {
    serve: [CODEX_TRUST, 'app-server', '--listen', 'ws://127.0.0.1:0'],
    addressIn: (printed) => /listening on: (\S+)/.exec(printed)?.[1],
    join: (address, prompt) => [...CODEX_FREE, '--remote', address, prompt],
  },
  plug: (folder) =>
    `codex plugin marketplace add ${folder} && codex plugin add leasehold@leasehold`,
  words: () => ({
    read: (path) => ({ tool: 'exec_command', input: { cmd: `cat ${path}` } }),
    edit: (path, from, to) => patch(`*** Update File: ${path}`, '@@', `-${from}`, ...plus(to)),
    write: (path, text) => patch(`*** Add File: ${path}`, ...plus(text)),
    remove: (path) => patch(`*** Delete File: ${path}`),
    move: (from, to) => patch(`*** Update File: ${from}`, `*** Move to: ${to}`, '@@', '-one', '+1'),
    shell: (cmd) => ({ tool: 'exec_command', input: { cmd } }),
    mcp: (tool, input) => ({ tool, input, namespace: 'mcp__leasehold' }),
    subagent: (script) => {
      const namespace = 'collaboration'
      const task = { task_name: script, message: `[play ${script}] go` }
      return [
        { calls: [{ tool: 'spawn_agent', namespace, input: task }] },
        { calls: [{ tool: 'wait_agent', namespace, input: { timeout_ms: 30_000 } }] },
      ]
    },
  }),
}

const GEMINI_MODEL = ['-m', 'gemini-2.5-pro']

const gemini: Client = {
  kind: 'gemini',
  name: 'Gemini CLI',
  npm: '@google/gemini-cli',
  version: '0.61.0',
  program: '.bin/gemini',
  env: (world) => ({
    GEMINI_API_KEY: KEY,
    GOOGLE_GEMINI_BASE_URL: urlOf(world),
    GEMINI_MODEL: 'gemini-2.5-pro',
  }),
  prepare: ({ home }) => {
    put(join(home, '.gemini/settings.json'), {
      security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
    })
  },
  once: (prompt) => [...GEMINI_MODEL, '--approval-mode', 'yolo', '-p', prompt],
  usual: (prompt) => [...GEMINI_MODEL, '--approval-mode', 'auto_edit', '-p', prompt],
  typed: (prompt) => [...GEMINI_MODEL, '--approval-mode', 'yolo', '-i', prompt],
  plug: (folder) => `yes | gemini extensions install ${folder}/plugins/gemini --consent`,
  words: ({ repo }) => ({
    read: (path) => ({ tool: 'read_file', input: { file_path: join(repo, path) } }),
    edit: (path, old_string, new_string) => ({
      tool: 'replace',
      input: {
        ...{ file_path: join(repo, path), old_string, new_string },
        instruction: 'As the script says.',
      },
    }),
    write: (path, content) => ({
      tool: 'write_file',
      input: { file_path: join(repo, path), content },
    }),
    shell: (command) => ({
      tool: 'run_shell_command',
      input: { command, description: 'scripted' },
    }),
    mcp: (tool, input) => ({ tool: `mcp_leasehold_${tool}`, input }),
    subagent: (script) => {
      const input = { agent_name: 'generalist', prompt: `[play ${script}] go` }
      return [{ calls: [{ tool: 'invoke_agent', input }] }]
    },
  }),
}

const opencode: Client = {
  kind: 'opencode',
  name: 'opencode',
  npm: 'opencode-ai',
  version: '1.18.33',
  program: `opencode-${MACHINE}/bin/opencode`,
  env: () => ({
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  }),
  prepare: (world) => {
    const options = { baseURL: `${urlOf(world)}/v1`, apiKey: KEY }
    const models = { scripted: { name: 'Scripted', tool_call: true } }
    const provider = { npm: '@ai-sdk/openai-compatible', name: 'Scripted', options, models }
    put(join(world.home, '.config/opencode/opencode.json'), {
      autoupdate: false,
      share: 'disabled',
      model: 'scripted/scripted',
      small_model: 'scripted/scripted',
      permission: { '*': 'allow' },
      provider: { scripted: provider },
    })
  },
  once: (prompt) => ['run', prompt],
  usual: (prompt) => ['run', prompt],
  typed: (prompt) => ['--prompt', prompt],
  escapes: 2,
  words: ({ repo }) => ({
    read: (path) => ({ tool: 'read', input: { filePath: join(repo, path) } }),
    edit: (path, oldString, newString) => ({
      tool: 'edit',
      input: { filePath: join(repo, path), oldString, newString },
    }),
    write: (path, content) => ({ tool: 'write', input: { filePath: join(repo, path), content } }),
    shell: (command) => ({ tool: 'bash', input: { command, description: 'scripted' } }),
    mcp: (tool, input) => ({ tool: `leasehold_${tool}`, input }),
    subagent: (script) => {
      const task = { description: 'scripted', prompt: `[play ${script}] go` }
      return [{ calls: [{ tool: 'task', input: { ...task, subagent_type: 'general' } }] }]
    },
  }),
}

const COPILOT_FREE = ['--allow-all-tools', '--allow-all-paths', '--no-auto-update']

const copilot: Client = {
  kind: 'copilot',
  name: 'Copilot CLI',
  npm: '@github/copilot',
  version: '1.0.102',
  program: `@github/copilot-${MACHINE}/copilot`,
  env: (world) => ({
    COPILOT_PROVIDER_BASE_URL: `${urlOf(world)}/v1`,
    COPILOT_PROVIDER_API_KEY: KEY,
    COPILOT_MODEL: 'gpt-4.1',
    COPILOT_OFFLINE: 'true',
  }),
  prepare: ({ home, repo }) => {
    put(join(home, '.copilot/config.json'), { trusted_folders: [repo], banner: 'never' })
  },
  once: (prompt) => ['-p', prompt, ...COPILOT_FREE],
  usual: (prompt) => ['-p', prompt, '--allow-tool', 'write', '--no-auto-update'],
  typed: (prompt) => ['-i', prompt, ...COPILOT_FREE],
  escapes: 2,
  words: ({ repo }) => ({
    read: (path) => ({ tool: 'view', input: { path: join(repo, path) } }),
    edit: (path, old_str, new_str) => ({
      tool: 'edit',
      input: { path: join(repo, path), old_str, new_str },
    }),
    write: (path, file_text) => ({ tool: 'create', input: { path: join(repo, path), file_text } }),
    replace: (path, file_text) => [
      { tool: 'bash', input: { command: `git rm -qf ${path}`, description: 'scripted' } },
      { tool: 'create', input: { path: join(repo, path), file_text } },
    ],
    shell: (command) => ({ tool: 'bash', input: { command, description: 'scripted' } }),
    isAskedForOurs: true,
    mcp: (tool, input) => ({ tool: `leasehold-${tool}`, input }),
    subagent: (script) => {
      const task = { name: 'sub', description: 'scripted', prompt: `[play ${script}] go` }
      return [{ calls: [{ tool: 'task', input: { ...task, agent_type: 'general-purpose' } }] }]
    },
  }),
}

export const CLIENTS: Client[] = [claude, codex, gemini, opencode, copilot]
