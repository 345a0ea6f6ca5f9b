import { attempt } from '../core/attempt.ts'
import { pathsAdded, pathsInDiff, pathsInEnvelope } from './patches.ts'
import { fieldsIn, type HookCall, type HookFields } from './protocol.ts'

/**
 * What a tool would write, told by the shape of its input. Editors bring tools of their own to the
 * hooks of another program (VS Code runs those of Claude Code), servers bring theirs, and every
 * release brings new ones: so it is not names of tools that are known here but what stands in their
 * fields (a path, a command, a program, a patch). The name only says whether a tool merely looks.
 */
type ToolCall = Pick<HookCall, 'files' | 'named' | 'whole' | 'command' | 'unread' | 'unknown'>

const wordsOf = (text: string) => new Set(text.split(/\s+/))

/** Tools that write one file or several: one that names none is told to name it. */
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

/** Words in a name that say so: `mcp__fs__write_file`, `fileDelete`. */
const VERBS = wordsOf(
  `write edit create replace insert delete remove rename move copy patch save append overwrite
  apply refactor reformat format fix update modify change set put add unlink truncate touch undo
  revert restore rollback transform convert generate`,
)
const RUNS = wordsOf(
  `bash shell powershell pwsh zsh sh terminal console exec execute executebash run command cmd
  runterminalcommand spawn stdin python node javascript js repl`,
)
/** The first or the last word of a name that only looks. */
const LOOKING = wordsOf(
  `get list ls read cat head tail stat search find grep glob fetch view show open ask await wait
  query kill exit enter close count inspect analyze analyse lint check diagnose diagnostics describe
  explain summarize outline lookup hover references definition symbols diff status log logs info
  preview render screenshot validate compare tree exists usages problems output result results`,
)
/** The same of one that touches no checkout. */
const ELSEWHERE = new RegExp(
  '^(?:todo|task|plan|cron|team|worktree|message|branch|session|memory|memories|issue|comment|' +
    'request|review|label|release|page|event|ticket|email|discussion|repository|gist|web|skill|' +
    'agent)s?$',
)
/** `mcp__files__write_file`; of Gemini CLI `mcp_files_write_file`. */
const SERVER = /^mcp__?(.+?)__?/
/** As clients name our own tools: `mcp__leasehold__…`, `mcp_leasehold_…`, `leasehold-…`. */
const OURS = /^(?:mcp__(?:plugin_leasehold_)?leasehold__|(?:mcp_)?leasehold[_-])/

const COMMANDS = wordsOf('command cmd commandline shellcommand')
/** What these hold is a command only where the tool runs some; and a program of any language. */
const SCRIPTS = wordsOf('chars input script')
const PROGRAMS = wordsOf('code source expression program')
const ARGUMENTS = wordsOf('args arguments argv parameters')
/** A field of this name holds a path, wherever in the name the word stands: `pathInProject`. */
const PATHS = wordsOf('path paths file files filename filepath notebook uri document')
/** A folder in which the tool works, not what it works on. */
// reason: what editors call the folder that they have open
const PLACES = wordsOf('dir directory cwd project root workspace repo repository base working')
/** What is in a file: `file_text`, `fileType`. */
const CONTENTS = wordsOf('text content contents body data type extension size mode encoding')
/** Both ends of a move, where the tool's name says that it moves a file. */
const ENDS = wordsOf('source destination src dest dst from to target old new')
/** Objects whose fields are called like the files that are changed. */
const BY_NAME = wordsOf('files changes edits')
const DEPTH_MAX = 4
const FOUND_MAX = 200
const PATH_MAX = 4_096

/** The words of a name: `pathInProject`, `file_path`. */
const partsOf = (name: string) =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter(Boolean)

/** What stands in the fields of an input, also in lists and objects below. */
interface Found {
  tool: readonly string[]
  files: string[]
  /** Texts that may name a file, whatever their field is called. */
  named: string[]
  commands: string[]
  patches: string[]
}

function lookInto(given: HookFields, found: Found, depth = 0): void {
  const runs = found.tool.some((part) => RUNS.has(part))
  const args = Object.entries(given).find(([name]) => ARGUMENTS.has(name.toLowerCase()))?.[1]
  for (const [name, value] of Object.entries(given)) {
    const parts = partsOf(name)
    const joined = parts.join('')
    const listed: unknown[] = Array.isArray(value) ? value.slice(0, FOUND_MAX) : [value]
    const texts = listed.filter((each) => typeof each === 'string' && each !== '') as string[]
    const [first] = texts
    if (first !== undefined && (COMMANDS.has(joined) || (runs && SCRIPTS.has(joined)))) {
      const command = Array.isArray(value) ? quoted(texts) : withArguments(first, args)
      if (runs || /\s/.test(command)) found.commands.push(command)
      if (PATCH.test(first)) found.patches.push(first)
    } else if (runs && PROGRAMS.has(joined)) {
      found.commands.push(...texts.map((each) => `node -e ${quoted([each])}`))
    } else for (const text of texts) lookAt(text, parts, found, depth)
    if (depth === DEPTH_MAX) continue
    for (const inner of listed.map(fieldsIn)) {
      if (BY_NAME.has(joined))
        found.files.push(...Object.keys(inner).filter(isPathLike).map(pathOf))
      lookInto(inner, found, depth + 1)
    }
  }
}

const PATCH = /^\s*\*{3}\s*\w+ |^(?:diff --git|--- )/m
const isPathLike = (text: string) => /[./]/.test(text) && !/[\n\0]/.test(text)

function lookAt(text: string, parts: readonly string[], found: Found, depth: number): void {
  if (PATCH.test(text)) found.patches.push(text)
  if (/^\s*\{/.test(text) && depth < DEPTH_MAX) {
    lookInto(
      attempt(() => fieldsIn(JSON.parse(text)), {}),
      found,
      depth + 1,
    )
  }
  if (text.length > PATH_MAX || /[\n\0]/.test(text) || /^https?:/.test(text)) return
  const isPath =
    parts.some((part) => PATHS.has(part)) &&
    !PLACES.has(parts[0] ?? '') &&
    !CONTENTS.has(parts.at(-1) ?? '')
  const moves = found.tool.some((part) => /^(?:file|move|rename|copy)$/.test(part))
  const isEnd = moves && ENDS.has(parts.join(''))
  ;(isPath || isEnd ? found.files : found.named).push(pathOf(text))
}

const pathOf = (text: string) =>
  text.startsWith('file:///') ? attempt(() => decodeURIComponent(text.slice(7)), text) : text

const quoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')

/** `{command: "rm", args: ["a.ts"]}` */
const withArguments = (command: string, args: unknown) => {
  const words = Array.isArray(args) ? args.filter((each) => typeof each === 'string') : []
  return words.length > 0 ? `${command} ${quoted(words)}` : command
}

/** What is about to happen, as far as the call tells. */
export function readTool(tool: string, given: HookFields): ToolCall {
  const lower = tool.toLowerCase()
  const parts = partsOf(tool.replace(SERVER, ''))
  const isWriter = WRITERS.has(lower)
  const isPatch = PATCHES.test(tool)
  if (OURS.test(tool)) return { files: [] }
  const found: Found = { tool: parts, files: [], named: [], commands: [], patches: [] }
  lookInto(given, found)
  // A command says more than a name: `create_and_run_task`.
  const command = found.commands.join('\n')
  if (!isWriter && onlyLooks(parts)) return { files: [], ...(command !== '' && { command }) }
  const patched = patchOf(found.patches)
  if (isPatch && patched.files.length === 0) return { files: [], unread: NO_FILE }
  const writes = isWriter || parts.some((part) => VERBS.has(part))
  const runs = parts.some((part) => RUNS.has(part))
  // What a tool runs is in its command; a path beside it is where, or what is run.
  const told = runs && !writes ? [] : found.files
  const files = [...new Set([...told, ...patched.files])].slice(0, FOUND_MAX)
  const named = runs || isPatch || (isWriter && files.length > 0) ? [] : found.named
  // Of an editor, `command` is the name of what it does.
  const runsOne = command !== '' && !isPatch && !isWriter
  const whole = isPatch ? patched.whole : WHOLE.has(lower) ? files : []
  const call: ToolCall = {
    files,
    ...(named.length > 0 && { named: named.slice(0, FOUND_MAX) }),
    ...(whole.length > 0 && { whole }),
    ...(runsOne && { command }),
  }
  if (files.length > 0 || runs || runsOne) return call
  if (isWriter) return { ...call, unread: `this ${tool} names no file` }
  // What another server's tool does beyond this checkout is none of our business.
  return writes && !SERVER.test(tool) ? { ...call, unknown: tool } : call
}

const NO_FILE = 'this patch names no file'

/** `search_replace` and `get_or_create_file` look, and then they write; `run_task` runs. */
function onlyLooks(parts: readonly string[]): boolean {
  const ends = [parts[0] ?? '', parts.at(-1) ?? '']
  if (ends.some((each) => ELSEWHERE.test(each))) return !RUNS.has(ends[0]!)
  return ends.some((each) => LOOKING.has(each)) && !parts.some((each) => VERBS.has(each))
}

function patchOf(patches: readonly string[]): { files: string[]; whole: string[] } {
  const files = patches.flatMap((text) => {
    const named = pathsInEnvelope(text)
    return named.length > 0 ? named : [...pathsInDiff(text, 0), ...pathsInDiff(text, 1)]
  })
  return { files, whole: patches.flatMap((text) => pathsAdded(text)) }
}
