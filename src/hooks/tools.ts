import { pathsAdded, pathsInEnvelope } from './patches.ts'
import { fieldsIn, type HookCall, type HookFields, textIn } from './protocol.ts'

/**
 * What a tool would write, told by its name and its input. Editors bring tools of their own to the
 * hooks of another program (VS Code runs those of Claude Code), and every release brings new ones:
 * so a tool is known to read, known to write, or looked at. One that sounds as if it wrote and
 * names no file that we find is `unknown`: the agent is told, and in `strict` it is refused.
 */
type ToolCall = Pick<HookCall, 'files' | 'whole' | 'command' | 'unread' | 'unknown'>

const wordsOf = (text: string) => new Set(text.split(/\s+/))

/** Tools that a shell stands behind, and the fields that hold its command. */
const SHELLS = wordsOf(
  `bash shell powershell local_shell shell_command exec_command write_stdin run_in_terminal
  run_terminal_cmd run_shell_command runterminalcommand execute_command execute_bash executebash
  run_command start_process`,
)
const COMMANDS = ['command', 'cmd', 'chars', 'input']

/** Tools that write one file or several, by the names of their programs. */
const WRITERS = wordsOf(
  `edit write multiedit notebookedit strreplace delete editnotebook tabwrite create
  create_file replace_string_in_file multi_replace_string_in_file insert_edit_into_file
  edit_file edit_files editfiles edit_notebook_file create_new_jupyter_notebook write_file replace
  write_to_file replace_in_file str_replace str_replace_editor str_replace_based_edit_tool
  delete_file rename_file move_file createfile fs_write fswrite editor`,
)
/** Those that put a whole file in place. */
const WHOLE = wordsOf('write create_file write_file write_to_file create createfile')
const PATCHES = /^(?:apply_?)?patch$/i
const PATCH_FIELDS = ['command', 'input', 'patch', 'patchText', 'diff']

/** Verbs in a name that say so: `mcp__fs__write_file`, `fileDelete`. */
const VERBS = wordsOf(
  `write edit create replace insert delete remove rename move copy patch save append overwrite apply
  refactor format fix exec execute terminal shell`,
)
/** The first or the last word of a name that sounds so and only looks, or touches no checkout. */
const LOOKING = wordsOf(
  `get list read search find fetch view show open ask await wait query terminal todo task cron team
  memory plan exit enter kill`,
)
const ELSEWHERE = new RegExp(
  '^(?:todo|task|plan|worktree|message|branch|session|memory|directory|issue|comment|request|' +
    'review|label|release|page|event|ticket|email|discussion|repository|gist)s?$',
)
/** `mcp__files__write_file`; of Gemini CLI `mcp_files_write_file`. */
const SERVER = /^mcp__?(.+?)__?/
/** As clients name our own tools: `mcp__leasehold__…`, `mcp_leasehold_…`, `leasehold-…`. */
const OURS = /^(?:mcp__(?:plugin_leasehold_)?leasehold__|(?:mcp_)?leasehold[_-])/

const PATH_FIELD = new RegExp(
  '^(?:(?:absolute|relative|target|destination|dest|new|old|source|notebook|local)_?)?' +
    '(?:file_?|notebook_?)?(?:path|file|filename|file_?name|notebook|paths|files)$',
  'i',
)
const NOT_PATHS = /^(?:dir|directory|cwd)/i
/** Both ends of a move, where the tool's name says that it moves a file. */
const ENDS = /^(?:source|destination|src|dest|dst|from|to|target)$/i
const DEPTH_MAX = 3
const FOUND_MAX = 200

/** Every text in `given` that stands under the name of a file, also in its lists of edits. */
function filesNamed(given: HookFields, isNamed: (field: string) => boolean, depth = 0): string[] {
  return Object.entries(given)
    .flatMap(([name, value]): string[] => {
      const listed: unknown[] = Array.isArray(value) ? value.slice(0, FOUND_MAX) : [value]
      return listed.flatMap((each) => {
        if (typeof each === 'string') return isNamed(name) && each !== '' ? [each] : []
        return depth < DEPTH_MAX ? filesNamed(fieldsIn(each), isNamed, depth + 1) : []
      })
    })
    .slice(0, FOUND_MAX)
}

const isNamedFor = (tool: string) => (field: string) =>
  (PATH_FIELD.test(field) && !NOT_PATHS.test(field)) || (/file/i.test(tool) && ENDS.test(field))

/** What is about to happen, as far as the call tells. */
export function readTool(tool: string, given: HookFields): ToolCall {
  const lower = tool.toLowerCase()
  if (OURS.test(tool)) return { files: [] }
  if (SHELLS.has(lower.replace(SERVER, ''))) {
    const command = commandIn(given)
    return command === undefined ? { files: [] } : { files: [], command }
  }
  if (PATCHES.test(tool)) {
    const patch = textIn(given, ...PATCH_FIELDS) ?? ''
    const files = pathsInEnvelope(patch)
    if (files.length === 0) return { files, unread: 'this patch names no file' }
    return { files, whole: pathsAdded(patch) }
  }
  const isWriter = WRITERS.has(lower)
  const server = SERVER.exec(tool)?.[1]
  const isGuess = soundsLikeWriting(tool.replace(SERVER, ''))
  if (!isWriter && !isGuess) return { files: [] }
  const files = filesNamed(given, isNamedFor(tool))
  if (files.length > 0) return { files, ...(WHOLE.has(lower) && { whole: files }) }
  if (isWriter) return { files, unread: `this ${tool} names no file` }
  // What another server's tool does beyond this checkout is none of our business.
  return server === undefined ? { files, unknown: tool } : { files }
}

function soundsLikeWriting(name: string): boolean {
  const words = name
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/)
  if (LOOKING.has(words[0]!) || ELSEWHERE.test(words.at(-1)!)) return false
  return words.some((word) => VERBS.has(word))
}

/** A text, or a list of words as Codex's older shell tools have it: `["bash", "-lc", "…"]`. */
function commandIn(given: HookFields): string | undefined {
  const list = COMMANDS.map((name) => given[name]).find(Array.isArray) as unknown[] | undefined
  const words = list?.filter((each) => typeof each === 'string')
  if (words && words.length > 0) {
    return words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
  }
  return textIn(given, ...COMMANDS)
}
