/** What becomes of a call of a tool: the files it is taken to write, a command, or nothing. */
export interface ToolInput {
  tool: string
  input: Record<string, unknown>
  /** Files that it writes, as named. */
  files?: string[]
  /** Texts that count where there is a file of that name. */
  named?: string[]
  command?: string
  /** Refused, because nobody can say what it writes; or told, and refused in `strict`. */
  is?: 'unread' | 'unknown'
}

const path = 'a.ts'
const file_path = '/repo/a.ts'
const patch = '*** Begin Patch\n*** Update File: a.ts\n@@\n-a\n+b\n*** End Patch'
const diff = 'diff --git a/a.ts b/a.ts\n--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n-a\n+b\n'
const command = 'rm a.ts'
const files = [path]

/** Files named: each is guarded like that of any edit. */
export const GUARDED: ToolInput[] = [
  { tool: 'Edit', input: { file_path, old_string: 'a', new_string: 'b' }, files: [file_path] },
  { tool: 'Write', input: { file_path, content: 'a' }, files: [file_path] },
  { tool: 'MultiEdit', input: { edits: [{ file_path }] }, files: [file_path] },
  {
    tool: 'NotebookEdit',
    input: { notebook_path: 'a.ipynb', new_source: 'x' },
    files: ['a.ipynb'],
  },
  { tool: 'StrReplace', input: { path, old_str: 'x', new_str: 'y' }, files },
  { tool: 'Delete', input: { path }, files },
  { tool: 'create_file', input: { filePath: path, content: 'x' }, files },
  { tool: 'replace_string_in_file', input: { filePath: path, oldString: 'x' }, files },
  { tool: 'multi_replace_string_in_file', input: { replacements: [{ filePath: path }] }, files },
  { tool: 'insert_edit_into_file', input: { filePath: path, code: 'x > y' }, files },
  {
    tool: 'str_replace_based_edit_tool',
    input: { command: 'create', path, file_text: 'x' },
    files,
  },
  { tool: 'fs_write', input: { command: 'create', path, file_text: 'x' }, files },
  { tool: 'write_to_file', input: { path, content: 'x' }, files },
  { tool: 'rename_file', input: { source: path, destination: 'b.ts' }, files: [path, 'b.ts'] },
  { tool: 'search_replace', input: { file_path, old_string: 'x' }, files: [file_path] },
  { tool: 'find_and_replace', input: { path, find: 'x', replace: 'y' }, files, named: ['x', 'y'] },
  { tool: 'edit_file', input: { target_file: path, code_edit: 'x' }, files },
  { tool: 'update_file', input: { path, content: 'b\n' }, files },
  { tool: 'modify', input: { file: path, with: 'b\n' }, files },
  { tool: 'reformat_file', input: { path }, files },
  { tool: 'format', input: { fileName: path }, files },
  {
    tool: 'mcp__jetbrains__reformat_file',
    input: { path, projectPath: '/repo' },
    files,
    named: ['/repo'],
  },
  {
    tool: 'mcp__jetbrains__replace_text_in_file',
    input: { pathInProject: path, oldText: 'x\n', newText: 'y\n', projectPath: '/repo' },
    files,
    named: ['/repo'],
  },
  { tool: 'mcp__jetbrains__create_new_file', input: { pathInProject: path, text: 'x\n' }, files },
  {
    tool: 'mcp__jetbrains__rename_refactoring',
    input: { pathInProject: path, symbolName: 'X\n' },
    files,
  },
  { tool: 'mcp__fs__write_file', input: { path, content: 'x\n' }, files },
  { tool: 'mcp_fs_write_file', input: { path, content: 'x\n' }, files },
  {
    tool: 'mcp__fs__move_file',
    input: { source: path, destination: 'b.ts' },
    files: [path, 'b.ts'],
  },
  {
    tool: 'mcp__fs__edit_file',
    input: { path, edits: [{ oldText: 'x\n' }], dryRun: false },
    files,
  },
  { tool: 'mcp__x__put', input: { uri: 'file:///repo/a.ts', text: 'x\n' }, files: [file_path] },
  { tool: 'mcp__lsp__rename', input: { relativeWorkspacePath: path }, files },
  {
    tool: 'mcp__lsp__apply_edit',
    input: { changes: { 'file:///repo/a.ts': [] } },
    files: [file_path],
  },
  { tool: 'mcp__x__bulk', input: { files: { 'a.ts': { content: 'x\n' } } }, files },
  { tool: 'mcp__x__bulk', input: { files: [{ path }, { path: 'b.ts' }] }, files: [path, 'b.ts'] },
  { tool: 'mcp__x__do', input: { request: { body: { filename: path } } }, files },
  { tool: 'mcp__x__do', input: { payload: JSON.stringify({ path }) }, files },
  { tool: 'mcp__serena__replace_symbol_body', input: { relative_path: path, body: 'x\n' }, files },
  { tool: 'mcp__serena__insert_after_symbol', input: { relative_path: path, body: 'x\n' }, files },
  { tool: 'get_or_create_file', input: { path }, files },
  { tool: 'fileDelete', input: { filepath: path }, files },
  { tool: 'create_directory', input: { path: '.leasehold' }, files: ['.leasehold'] },
  { tool: 'mcp__x__undo', input: { paths: [path, 'b.ts'] }, files: [path, 'b.ts'] },
  { tool: 'apply_patch', input: { command: patch }, files },
  { tool: 'apply_patch', input: { input: patch }, files },
  { tool: 'patch', input: { patchText: patch }, files },
  { tool: 'mcp__x__apply_diff', input: { diff }, files: ['a/a.ts', 'b/a.ts', path] },
  { tool: 'mcp__x__submit', input: { changes: patch }, files },
]

/** Texts that may be a file's name: guarded where there is such a file. */
export const PERHAPS: ToolInput[] = [
  { tool: 'mcp__x__modify', input: { resource: path, text: 'b\n' }, named: files },
  { tool: 'mcp__x__update', input: { target: path }, named: files },
  { tool: 'mcp__x__frobnicate', input: { what: path }, named: files },
]

/** A command: read like any. */
export const COMMANDS: ToolInput[] = [
  { tool: 'Bash', input: { command, description: 'Do it' }, command },
  { tool: 'Shell', input: { command, working_directory: '/repo' }, command },
  { tool: 'run_in_terminal', input: { command, explanation: 'x', isBackground: false }, command },
  { tool: 'local_shell', input: { command: ['rm', path] }, command: "'rm' 'a.ts'" },
  { tool: 'exec_command', input: { cmd: command }, command },
  { tool: 'write_stdin', input: { session_id: 1, chars: command }, command },
  { tool: 'Monitor', input: { command, description: 'x', persistent: true }, command },
  { tool: 'executeBash', input: { command, cwd: '/repo' }, command },
  { tool: 'powershell', input: { command: 'Remove-Item a.ts' }, command: 'Remove-Item a.ts' },
  { tool: 'execute_shell_command', input: { command }, command },
  { tool: 'mcp__serena__execute_shell_command', input: { command, cwd: '/repo' }, command },
  { tool: 'mcp__jetbrains__execute_terminal_command', input: { command, reuse: true }, command },
  { tool: 'mcp__x__run', input: { command: 'rm', args: [path] }, command: "rm 'a.ts'" },
  { tool: 'start_process', input: { command: 'rm', args: [path] }, command: "rm 'a.ts'" },
  { tool: 'mcp__x__task', input: { commandLine: command }, command },
  {
    tool: 'create_and_run_task',
    input: { task: { label: 'x', type: 'shell', command: 'rm', args: [path] } },
    command: "rm 'a.ts'",
  },
  { tool: 'mcp__x__new_session', input: { command }, command },
  { tool: 'run_task', input: { task: { command: 'rm', args: [path] } }, command: "rm 'a.ts'" },
  { tool: 'mcp__x__deploy', input: { shellCommand: command }, command },
  {
    tool: 'execute_python',
    input: { code: 'open("a.ts", "w")' },
    command: `node -e 'open("a.ts", "w")'`,
  },
  {
    tool: 'mcp__ide__executeCode',
    input: { code: 'os.remove("a.ts")' },
    command: `node -e 'os.remove("a.ts")'`,
  },
]

/** Nobody can say what it writes. */
export const UNSURE: ToolInput[] = [
  { tool: 'Write', input: { content: 'no path\n' }, is: 'unread' },
  { tool: 'apply_patch', input: { command: 'nothing' }, is: 'unread' },
  { tool: 'refactor_project', input: {}, is: 'unknown' },
]

/** Silent, and why: docs/hooks.md says so, in these words. */
const LET_PAST: Record<string, ToolInput[]> = {
  'tools that only look': [
    { tool: 'Read', input: { file_path } },
    { tool: 'read_file', input: { path } },
    { tool: 'Grep', input: { pattern: 'x', path } },
    { tool: 'Glob', input: { pattern: '*.ts' } },
    { tool: 'LS', input: { path: 'src' } },
    { tool: 'get_file_contents', input: { path } },
    { tool: 'list_directory', input: { path: 'src' } },
    { tool: 'mcp__jetbrains__get_file_text_by_path', input: { pathInProject: path } },
    { tool: 'mcp__serena__find_symbol', input: { relative_path: path } },
    { tool: 'open_file', input: { path } },
    { tool: 'lint_file', input: { path } },
    { tool: 'kill_shell', input: { shell_id: '1' } },
    { tool: 'BashOutput', input: { bash_id: '1' } },
  ],
  'those that touch no checkout': [
    { tool: 'WebFetch', input: { url: 'https://example.com/a.ts', prompt: 'x' } },
    { tool: 'TodoWrite', input: { todos: [{ content: 'x', status: 'pending' }] } },
    { tool: 'Task', input: { prompt: 'Write a.ts', subagent_type: 'x' } },
    { tool: 'mcp__github__create_issue', input: { title: 'a.ts is wrong', body: path } },
  ],
  'and our own': [{ tool: 'mcp__leasehold__reserve_paths', input: { paths: [path] } }],
  'tools of other MCP servers that name neither a file nor a command': [
    { tool: 'mcp__x__sync_everything', input: { force: true } },
  ],
}

export const SILENT: ToolInput[] = Object.values(LET_PAST).flat()
export const REASONS: string[] = Object.keys(LET_PAST)
