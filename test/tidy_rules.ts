import { INDEXES } from '../src/core/schema/indexes.ts'
import { TABLES } from '../src/core/schema/schema.ts'
import { posix } from 'node:path'
import { type Masks, masksOf } from './tidy_lexer.ts'

/** A file of the tree, read once, with its path from the root: `src/core/locks/lock.ts`. */
export interface TreeFile {
  path: string
  text: string
  lines: string[]
  masks: Masks
}

/** Where a rule is broken and what to do about it, ready to be printed. */
export type Fault = string

export interface Rule {
  says: string
  faults(files: TreeFile[]): Fault[]
}

export function treeFile(path: string, text: string): TreeFile {
  const script = /\.(?:tsx?|mjs|js)$/.test(path)
  const masks = script ? masksOf(text) : { code: '', strings: '', comments: '', literals: [] }
  return { path, text, lines: text.split('\n'), masks }
}

function lineAt(file: TreeFile, offset: number): number {
  return file.text.slice(0, offset).split('\n').length
}

function fault(file: TreeFile, line: number, what: string): Fault {
  return `${file.path}:${line} ${what}`
}

/** A line may break a rule when the comment line just before it says why: `// reason: …`. */
function isExcused(file: TreeFile, line: number): boolean {
  return /^\s*(?:\/\/|\*|--|#) ?reason: \S/.test(file.lines[line - 2] ?? '')
}

/** Every match of `pattern` in a mask of the file that is not excused. */
function* matches(file: TreeFile, mask: string, pattern: RegExp): Generator<[string, number]> {
  for (const match of mask.matchAll(new RegExp(pattern, `${pattern.flags.replace('g', '')}g`))) {
    const line = lineAt(file, match.index)
    if (!isExcused(file, line)) yield [match[1] ?? match[0], line]
  }
}

const isScript = (file: TreeFile) => /\.(?:tsx?|mjs|js)$/.test(file.path)
const inSrc = (file: TreeFile) => file.path.startsWith('src/')
const inCore = (file: TreeFile) => file.path.startsWith('src/core/')
const inTest = (file: TreeFile) => /^(test|lab)\//.test(file.path)
const isTidy = (file: TreeFile) => /^test\/tidy\w*(?:\.test)?\.ts$/.test(file.path)

interface Import {
  line: number
  specifier: string
  typeOnly: boolean
  /** The file of the tree that it names; undefined for packages and node modules. */
  target: string | undefined
}

/** Up to the quote that opens the specifier; the first group is there for `import type`. */
const IMPORT = new RegExp(
  [
    String.raw`\b(?:import|export)\b(\s+type\b)?[^'";]*?\bfrom\s*(?=['"])`,
    String.raw`\b(?:import\s*\(?|require\()\s*(?=['"])`,
  ].join('|'),
  'g',
)

export function importsOf(file: TreeFile): Import[] {
  const found: Import[] = []
  for (const match of file.masks.code.matchAll(IMPORT)) {
    const start = match.index + match[0].length
    const specifier = file.masks.literals.find((literal) => literal.start === start)?.text
    if (specifier === undefined) continue
    const relative = specifier.startsWith('.')
    const target = relative ? posix.join(posix.dirname(file.path), specifier) : undefined
    const typeOnly = match[1] !== undefined
    found.push({ line: lineAt(file, start), specifier, typeOnly, target })
  }
  return found
}

type Room =
  | 'core'
  | 'agents'
  | 'machine'
  | 'stores'
  | 'operations'
  | 'reach'
  | 'doors'
  | 'client'
  | 'daemon'
  | 'hooks'
  | 'web'
  | 'root'

type Below = Partial<Record<Room, 'all' | 'types'>>

const BELOW_MACHINE: Below = { agents: 'all', core: 'all' }
const BELOW_STORES: Below = { machine: 'all', ...BELOW_MACHINE }
const BELOW_REACH: Below = { operations: 'all', stores: 'all', ...BELOW_STORES }
const BELOW_DOORS: Below = { reach: 'all', ...BELOW_REACH }

/** `types`: only what the compiler takes away again may be imported from there. */
const WALLS: Record<Room, Below> = {
  core: {},
  // What is known of each coding agent: facts, and nothing that runs.
  agents: {},
  machine: BELOW_MACHINE,
  stores: BELOW_STORES,
  operations: { ...BELOW_STORES, stores: 'types' },
  reach: BELOW_REACH,
  doors: BELOW_DOORS,
  client: BELOW_DOORS,
  hooks: BELOW_DOORS,
  daemon: { doors: 'all', client: 'all', hooks: 'all', ...BELOW_DOORS },
  // Runs in a browser: the server is asked over HTTP, and known by its types.
  web: { client: 'all', operations: 'types', core: 'all' },
  // What the package exports by name: src/index.ts and its like.
  root: { client: 'all', ...BELOW_DOORS },
}

/** Packages that only one place may name: easy to replace, and off everybody else's path. */
const HOMES: Record<string, RegExp> = {
  '@photostructure/sqlite': /^src\/stores\/sqlite\/driver\.ts$/,
  'node:sqlite': /^src\/stores\/sqlite\/driver\.ts$/,
  pg: /^src\/stores\/postgres\/driver\.ts$/,
  'node-diff3': /^src\/operations\/text_merge\.ts$/,
  commander: /^src\/doors\/cli\//,
  picocolors: /^src\/doors\/cli\//,
  '@modelcontextprotocol': /^src\/doors\/mcp\//,
  preact: /^src\/web\//,
  '@preact/signals': /^src\/web\//,
  zod: /^src\/(?:operations|doors|client|daemon)\//,
}

function roomOf(path: string): Room | undefined {
  const [, room, rest] = path.split('/')
  if (rest === undefined) return 'root'
  return room !== undefined && room in WALLS && room !== 'root' ? (room as Room) : undefined
}

/**
 * Rooms of core that know the aggregate (locks, tasks, queue) and are known by none of it. `rows`
 * names the rows of all, `forget` takes away what is over, `touched` says whose each thing is, and
 * `reasons` says of all of them why they do not go on.
 */
const LEAF = /^src\/core\/(paths|memory|stats|reasons)\//
const KNOWS_LEAVES = /^src\/core\/(?:(?:rows|forget|touched)\.ts$|reasons\/)/

function isPastLeaf(from: string, target: string): boolean {
  const [, leaf] = LEAF.exec(target) ?? []
  return leaf !== undefined && LEAF.exec(from)?.[1] !== leaf && !KNOWS_LEAVES.test(from)
}

/**
 * A store keeps rows and knows no rules. Of core it may have what all rules share and declare, how
 * things are worded, and the types of anything. Rules that nobody asks for are run by the writer,
 * around every batch; and a check compares ready rows with the tasks that they follow from.
 */
const NO_RULES =
  /^src\/core\/(?:schema\/\w+|ahead|event|hint|planted|quote|refusal|retention|rows|text|view)\.ts$/
const UNASKED =
  /^src\/core\/(?:forget|locks\/(?:calls|restore|sweep)|stats\/(?:histogram|stat))\.ts$/
const isRunByStore = (from: string, target: string) =>
  from.startsWith('src/stores/writer/')
    ? UNASKED.test(target)
    : from === 'src/stores/sqlite/check.ts' && target === 'src/core/tasks/ready.ts'

/** `doors/cli` wires everything, as the daemon does. Other doors do not know each other. */
function mayImport(from: TreeFile, { target, typeOnly }: Import & { target: string }): boolean {
  const [room, other] = [roomOf(from.path), roomOf(target)]
  if (!room || !other || !target.startsWith('src/')) return false
  if (room === 'core' && (other !== 'core' || isPastLeaf(from.path, target))) return false
  if (room === 'stores' && other === 'core') {
    return typeOnly || NO_RULES.test(target) || isRunByStore(from.path, target)
  }
  if (from.path.startsWith('src/doors/cli/') && other !== 'root') return true
  if (room === 'doors' && other === 'doors') {
    const [mine, theirs] = [from.path, target].map((path) => path.split('/').slice(2, -1)[0])
    // How answers read is no door: all of them show that.
    return theirs === undefined || theirs === 'reads' || mine === theirs
  }
  const allowed = room === other ? 'all' : WALLS[room][other]
  return allowed === 'all' || (allowed === 'types' && typeOnly)
}

const importWalls: Rule = {
  says: 'imports point one way, and only to what exists',
  faults(files) {
    const paths = new Set(files.map((file) => file.path))
    return files.filter(isScript).flatMap((file) =>
      importsOf(file).flatMap((each) => {
        const what = wallFault(file, each, paths)
        return what ? [fault(file, each.line, what)] : []
      }),
    )
  },
}

function wallFault(file: TreeFile, each: Import, paths: Set<string>): string | undefined {
  const { specifier, target } = each
  if (target !== undefined) {
    if (!paths.has(target)) return `imports ${specifier}, which does not exist. Mend the path.`
    if (!inSrc(file) || mayImport(file, { ...each, target })) return undefined
    const how = WALLS[roomOf(file.path) ?? 'core'][roomOf(target) ?? 'core']
    const noRule = file.path.startsWith('src/stores/') && inCore({ ...file, path: target })
    if (noRule) return `imports ${target}, a rule. A store knows none: say it in core/ahead.ts.`
    const hint = how === 'types' ? 'Only `import type` is allowed there.' : 'Turn it around.'
    return `imports ${target} against the import rules. ${hint} See ARCHITECTURE.md.`
  }
  if (!inSrc(file)) return undefined
  if (inCore(file)) return `imports ${specifier}. Core imports nothing: take it from the view.`
  const home = Object.entries(HOMES).find(([name]) => `${specifier}/`.startsWith(`${name}/`))
  if (home && !home[1].test(file.path)) {
    return `imports ${specifier}, which only ${home[1].source} may name. Go through that.`
  }
  return undefined
}

const TABLE_NAMES = new Set<string>(TABLES)
const INDEX_NAMES = new Set(Object.keys(INDEXES).filter((name) => !TABLE_NAMES.has(name)))

const storeIndexes: Rule = {
  says: 'a store follows every index of the schema, and singles out none',
  faults(files) {
    return files
      .filter((file) => file.path.startsWith('src/stores/') && isScript(file))
      .flatMap((file) =>
        file.masks.literals
          .filter(({ text }) => INDEX_NAMES.has(text))
          .map(({ start, text }) => {
            const what = `singles out ${text}. Say what rules do with it in src/core/ahead.ts.`
            return fault(file, lineAt(file, start), what)
          }),
      )
  },
}

const IMPURE: [RegExp, string][] = [
  [/\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )\bDate\(/, 'reads the clock: use view.now or view.at'],
  [/\bperformance\b/, 'reads the clock: use view.now'],
  [/\bMath\.random\b|\brandomUUID\b|\bcrypto\b/, 'draws at random: take ids from the ask'],
  [/\bfs\b|\bfetch\(|\brequire\(|\bconsole\b/, 'does I/O: load it as rows of the view'],
  [/\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/, 'waits: waiting is a ticket row'],
  [/\bawait\b|\basync\b|\bPromise\b/, 'is asynchronous: rules are synchronous over a view'],
  [/\btoLocale\w+|\blocaleCompare\b|\bIntl\./, 'reads the locale: it must decide alike anywhere'],
  [/\bglobalThis\b/, 'reaches for globals: take it from the view'],
]

/** Fields of a `ProcessRef`, which code in core may hold in a variable named `process`. */
const PROCESS_FIELD = /^(?:host|seat|pid|start)$/

const corePurity: Rule = {
  says: 'core has no clock, no randomness, no I/O and no waiting',
  faults(files) {
    return files.filter(inCore).flatMap((file) => {
      const found: Fault[] = []
      for (const [pattern, why] of IMPURE) {
        for (const [word, line] of matches(file, file.masks.code, pattern)) {
          found.push(fault(file, line, `says \`${word}\`: core ${why}.`))
        }
      }
      const bound = /\bprocess\s*:\s*ProcessRef|\b(?:const|let)\s+process\b/.test(file.masks.code)
      const member = /(?<![.\w])process\??\.(\w+)/
      for (const [field, line] of matches(file, file.masks.code, member)) {
        if (bound && PROCESS_FIELD.test(field)) continue
        found.push(fault(file, line, `says \`process.${field}\`: core asks view.process instead.`))
      }
      return found
    })
  },
}

/** So short that its body says it all. */
const DOCLESS_LINES_MAX = 5

const coreDocs: Rule = {
  says: 'an exported function of core states its contract',
  faults(files) {
    return files.filter(inCore).flatMap((file) => {
      const found: Fault[] = []
      file.lines.forEach((text, i) => {
        const name = /^export (?:function\*? |const )(\w+)/.exec(text)?.[1]
        const isFunction = /^export function|^export const \w+ = .*(?:=>|\($)/.test(text)
        if (!name || !isFunction || /\*\/\s*$/.test(file.lines[i - 1] ?? '')) return
        // The formatter puts the closing brace of a longer function on a line of its own.
        const opens = /[{(,>]$/.test(text)
        const length = opens ? file.lines.slice(i).findIndex((line) => /^\}\)?$/.test(line)) + 1 : 1
        if (length <= DOCLESS_LINES_MAX) return
        found.push(fault(file, i + 1, `${name} has no doc comment. Say what it does and refuses.`))
      })
      return found
    })
  },
}

const LINES_MAX = 400
const LINES_MEDIAN_MAX = 150
const COLUMNS_MAX = 100
const CODE = /^(?:src|test|bench)\/.*\.(?:tsx?|mjs|js|sql|py|sh)$|^[\w.]+\.(?:mjs|ts)$/

const fileSizes: Rule = {
  says: `files stay under ${LINES_MAX} lines, half of them under ${LINES_MEDIAN_MAX}`,
  faults(files) {
    const sized = files
      .filter((file) => CODE.test(file.path))
      .map((file) => ({ file, lines: file.text.trimEnd().split('\n').length }))
    const found = sized
      .filter(({ lines }) => lines > LINES_MAX)
      .map(({ file, lines }) => fault(file, LINES_MAX, `has ${lines} lines. Split it by noun.`))
    const src = sized.filter(({ file }) => inSrc(file)).toSorted((a, b) => a.lines - b.lines)
    const middle = src[Math.floor(src.length / 2)]
    if (middle && middle.lines >= LINES_MEDIAN_MAX) {
      const what = `is the median of src with ${middle.lines} lines. Split the longest files.`
      found.push(fault(middle.file, 1, what))
    }
    return found
  },
}

const columns: Rule = {
  says: `lines end by column ${COLUMNS_MAX}`,
  faults(files) {
    return files
      .filter((file) => CODE.test(file.path))
      .flatMap((file) =>
        file.lines.flatMap((line, i) => {
          const width = Array.from(line).length
          if (width <= COLUMNS_MAX || /https?:\/\//.test(line)) return []
          return [fault(file, i + 1, `is ${width} columns wide. Break it before ${COLUMNS_MAX}.`)]
        }),
      )
  },
}

export const SHAPE_RULES = {
  importWalls,
  storeIndexes,
  corePurity,
  coreDocs,
  fileSizes,
  columns,
} satisfies Record<string, Rule>

export { fault, inSrc, inTest, isExcused, isScript, isTidy, lineAt, matches }
