import {
  type Fault,
  fault,
  inSrc,
  inTest,
  isExcused,
  isScript,
  isTidy,
  lineAt,
  matches,
  type Rule,
  type TreeFile,
} from './tidy_rules.ts'

/** Words that name none of our things, wherever they stand in src: code, text or comment. */
const NEVER = new Map([
  ['mutex', 'lock'],
  ['workspace', 'project'],
  ['tenant', 'project'],
  ['backlog', 'queue'],
])

/**
 * Words that are wrong in identifiers and strings for the thing they would name here, each with the
 * surroundings in which it keeps its ordinary sense.
 */
const MISNAMED: { words: RegExp; say: string; fine?: RegExp }[] = [
  { words: /\bowners?\b/, say: 'holder (of a lock) or user (of a task)' },
  { words: /\bjobs?\b/, say: 'task', fine: /\bbackground jobs?\b/ },
  { words: /\bworkers?\b/, say: 'agent', fine: /\bworker threads?\b|\bservice worker\b/ },
  { words: /\b(?:lease|lock|fence|fencing) tokens?\b/, say: 'fence' },
  { words: /\b(?:fence|lease|lock) versions?\b/, say: 'fence' },
  { words: /\brefresh(?:es|ed)? (?:\w+ )?(?:lease|lock)s?\b/, say: 'renew' },
  { words: /\b(?:lease|lock)s? refresh/, say: 'renew' },
  { words: /\bexecutions?\b|\battempt id\b/, say: 'run' },
  { words: /\bmemory (?:entry|entries|slots?)\b/, say: 'memory' },
  { words: /\bexceptions?\b/, say: 'refusal', fine: /\b(?:errno|uncaught) exception\b/ },
  { words: /\b(?:agent|coding) sessions?\b/, say: 'agent', fine: /\bcopilot agent session id\b/ },
]

/** `ownerId`, `owner_id` and `OWNER_ID` are all read as `owner id`. */
function spoken(identifier: string): string {
  return identifier
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
}

function misnamed(text: string): { word: string; say: string } | undefined {
  for (const { words, say, fine } of MISNAMED) {
    const rest = fine ? text.replaceAll(new RegExp(fine, 'g'), ' ') : text
    const word = words.exec(rest)?.[0]
    if (word !== undefined) return { word, say }
  }
  return undefined
}

/** The room for background jobs may say job and worker: there they mean nothing else. */
const JOBS = /^src\/daemon\/embedding/

const glossary: Rule = {
  says: 'one word, one thing: the words of the glossary',
  faults(files) {
    return files.filter((file) => inSrc(file) && isScript(file)).flatMap(wordFaults)
  },
}

function wordFaults(file: TreeFile): Fault[] {
  const found: Fault[] = []
  const { code, strings, comments } = file.masks
  for (const mask of [code, strings, comments]) {
    for (const [word, line] of matches(file, mask, /[A-Za-z][\w$]*/)) {
      const parts = spoken(word).split(' ')
      const say = parts.map((part) => NEVER.get(part.replace(/s$/, ''))).find((each) => each)
      if (say) found.push(fault(file, line, `says "${word}". The word here is ${say}.`))
    }
  }
  if (JOBS.test(file.path)) return found
  for (const [word, line] of matches(file, code, /[A-Za-z][\w$]*/)) {
    const wrong = misnamed(spoken(word))
    if (wrong) found.push(fault(file, line, `names ${word}. The word here is ${wrong.say}.`))
  }
  strings.split('\n').forEach((text, i) => {
    const wrong = isExcused(file, i + 1) ? undefined : misnamed(spoken(text))
    if (!wrong) return
    found.push(fault(file, i + 1, `says "${wrong.word}". The word here is ${wrong.say}.`))
  })
  return found
}

const uniqueTypes: Rule = {
  says: 'an exported type has a name that no other file of src exports',
  faults(files) {
    const homes = new Map<string, string>()
    const declared = /^export (?:abstract )?(?:interface|type|class|enum) (\w+)/m
    return files.filter(inSrc).flatMap((file) =>
      [...matches(file, file.masks.code, declared)].flatMap(([name, line]) => {
        const home = homes.get(name)
        homes.set(name, home ?? file.path)
        if (home === undefined) return []
        return [fault(file, line, `exports ${name}, as ${home} does. Name it by its noun.`)]
      }),
    )
  },
}

const anyOf = (patterns: string[], flags = '') => new RegExp(patterns.join('|'), flags)

/** In capitals a fragment is enough; small letters need a whole statement, or prose matches. */
const SQL = anyOf([
  String.raw`\b(?:SELECT|PRAGMA|WHERE|ATTACH)\s`,
  String.raw`\b(?:INSERT\s+INTO|DELETE\s+FROM|ORDER\s+BY|ON\s+CONFLICT|VACUUM\s+INTO)\b`,
  String.raw`\b(?:CREATE|DROP|ALTER)\s+(?:TABLE|INDEX)\b`,
  String.raw`\bUPDATE\s+\S+\s+SET\b|\bVALUES\s*\(`,
  String.raw`\bselect\s.*\sfrom\s|\binsert\s+into\s|\bupdate\s+\S+\s+set\s|\bdelete\s+from\s`,
])

/** The files that put SQL together, from names that the code owns. */
const SQL_BUILDER =
  /^src\/stores\/(?:sql|(?:sqlite|postgres|copy)\/(?:statements|loads|scans|shape|writes))\.ts$/

const sqlText: Rule = {
  says: 'SQL is fixed text with bound values',
  faults(files) {
    const scripts = files.filter((file) => isScript(file) && !inTest(file))
    return scripts.filter((file) => !SQL_BUILDER.test(file.path)).flatMap(sqlFaults)
  },
}

function sqlFaults(file: TreeFile): Fault[] {
  return file.masks.literals.flatMap(({ start, end, text, interpolates }) => {
    if (!SQL.test(text)) return []
    const { code } = file.masks
    const joined = /^\s*\+(?!\+)/.test(code.slice(end)) || /\+\s*$/.test(code.slice(0, start))
    if (!interpolates && !joined) return []
    const what = `puts SQL together. Bind values with ?; names only in ${SQL_BUILDER.source}.`
    return [fault(file, lineAt(file, start), what)]
  })
}

const REGISTRY = anyOf(
  [
    String.raw`\bregistry\.[\w-]+\.\w+|\bnpm\.pkg\.\w+`,
    String.raw`\b[\w.-]*(?:artifactory|nexus|verdaccio)[\w-]*\.[\w.]+`,
    String.raw`\/\/[\w.-]*(?:npmjs|yarnpkg|npmmirror)\.\w+`,
  ],
  'i',
)
const MACHINE_PATH = /(?<![\w.*$}/-])\/(?:work|root)\/[\w.]/
const TEMP_PATH = /(?<![\w.*$}/-])\/tmp\b/

const machineNames: Rule = {
  says: 'no file knows the machine it was written on',
  faults(files) {
    const found: Fault[] = []
    for (const file of files.filter((each) => !isTidy(each))) {
      found.push(
        ...named(file, REGISTRY, 'names a package registry. That is for npm’s own config.'),
      )
      found.push(...named(file, MACHINE_PATH, 'names a folder of one machine. Make it relative.'))
      if (inSrc(file)) found.push(...named(file, TEMP_PATH, 'names /tmp. Use os.tmpdir().'))
    }
    return found
  },
}

function named(file: TreeFile, pattern: RegExp, what: string): Fault[] {
  return file.lines.flatMap((line, i) => (pattern.test(line) ? [fault(file, i + 1, what)] : []))
}

const pins: Rule = {
  says: 'versions are pinned exactly, and the lock file names no host',
  faults(files) {
    return files.flatMap((file) => {
      if (file.path === 'package-lock.json') {
        const what = 'has "resolved". Write it with npm’s omit-lockfile-registry-resolved.'
        return [...named(file, /"resolved"/, what), ...missingPlatforms(file)]
      }
      return file.path === 'package.json' ? pinFaults(file) : []
    })
  },
}

/** Some releases name packages for platforms that were never published; npm ci then fails. */
function missingPlatforms(file: TreeFile): Fault[] {
  const { packages = {} } = JSON.parse(file.text) as {
    packages?: Record<string, { optionalDependencies?: Record<string, string> }>
  }
  const all = Object.values(packages)
  const wanted = all.flatMap((each) => Object.keys(each.optionalDependencies ?? {}))
  const has = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)))
  return wanted
    .filter((name) => !has.has(name))
    .map((name) => fault(file, 1, `lacks ${name}. Pin an older release of what needs it.`))
}

function pinFaults(file: TreeFile): Fault[] {
  const found: Fault[] = []
  let section = ''
  file.lines.forEach((line, i) => {
    section = /^ {2}"(\w+)": \{/.exec(line)?.[1] ?? section
    if (!/[dD]ependencies$|^overrides$/.test(section)) return
    for (const [, name, version] of line.matchAll(/"([@\w./-]+)": "([^"]*)"/g)) {
      if (/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version!)) continue
      found.push(fault(file, i + 1, `takes ${name} ${version}. Pin one version exactly.`))
    }
    if (/^ {2}\}|\},?$/.test(line)) section = ''
  })
  return found
}

const SLEEP = anyOf([
  String.raw`\bsetTimeout\(\s*(?:resolve|res|r|done|ok|next)\b|\bawait\s+setTimeout\(`,
  String.raw`\bsleep\(|\bAtomics\.wait\b`,
])
const UNRUN = /\b(?:describe|test|it|suite|context|ctx|t)(?:\.\w+)*\.(?:skip|only|todo|fails)\w*/
const UNRUN_IF = /\.(?:skipIf|runIf)\b/

const honestTests: Rule = {
  says: 'tests run, and wait on events rather than on time',
  faults(files) {
    const why = 'or say why on the line before: // reason: …'
    return files
      .filter((file) => inTest(file) && isScript(file))
      .flatMap((file) => {
        const { code, literals } = file.masks
        const found: Fault[] = []
        for (const pattern of [UNRUN, UNRUN_IF]) {
          for (const [word, line] of matches(file, code, pattern)) {
            found.push(fault(file, line, `says ${word}. Let it run, ${why}`))
          }
        }
        for (const [word, line] of matches(file, code, SLEEP)) {
          found.push(fault(file, line, `sleeps (${word}…). Wait on an event, ${why}`))
        }
        for (const { start, text } of literals) {
          const line = lineAt(file, start)
          const imports = /\b(?:from|import\()\s*$/.test(code.slice(0, start))
          const timers = imports && /^(?:node:)?timers\/promises$/.test(text)
          if (!timers || isExcused(file, line)) continue
          found.push(fault(file, line, `imports ${text}. Wait on an event, ${why}`))
        }
        return found
      })
  },
}

const silencers: Rule = {
  says: 'nothing silences the linter without saying why',
  faults(files) {
    const bare = /(?:ox|es)lint-disable(?!.* -- \S)[\w-]*/
    return files
      .filter(isScript)
      .flatMap((file) =>
        [...matches(file, file.masks.comments, bare)].map(([word, line]) =>
          fault(file, line, `says ${word} without a reason. Add: -- why.`),
        ),
      )
  },
}

export const WORD_RULES = {
  glossary,
  uniqueTypes,
  sqlText,
  machineNames,
  pins,
  honestTests,
  silencers,
} satisfies Record<string, Rule>
