import { STATE_NAME } from '../../machine/place.ts'
import type { Effects, ShellPlace } from './effects.ts'
import { pathOf } from './options.ts'

const TEXT_MAX = 200_000
const NESTED_MAX = 200
const WORDS_MAX = 2_000

/** Whether a script is too long or too deep to be read in the time that a hook has. */
export function isTangled(text: string): boolean {
  if (text.length > TEXT_MAX) return true
  let open = 0
  for (const char of text) {
    if (char === '(' || char === '{') open += 1
    else if (char === ')' || char === '}') open = Math.max(0, open - 1)
    if (open > NESTED_MAX) return true
  }
  return false
}

const EDITING = String.raw`write|unlink|remove|rename|truncate|delete|rmtree|rmdir|rmsync|chmod`
/** By these words something is written: in a shell, and in a program of another language. */
const WRITES = {
  shell: new RegExp(
    String.raw`>|\b(?:rm|mv|cp|tee|dd|ln|sed|perl|git|patch|touch|tar)\b|${EDITING}`,
  ),
  code: new RegExp(
    String.raw`${EDITING}|shutil|copy_?file|["'][rb]?[wax][bt]?\+?["']|["']r\+["']|["']\+?>` +
      String.raw`|\b(?:system|exec\w*|spawn\w*|popen|subprocess)\b`,
    'i',
  ),
}

/**
 * What nobody here understands, and what may write, is taken to write every file that it names; and
 * all that it names of a state folder.
 */
export function addGuessed(
  text: string,
  place: ShellPlace,
  effects: Effects,
  language: keyof typeof WRITES = 'shell',
): void {
  if (!WRITES[language].test(text)) return
  const words = text.slice(0, TEXT_MAX).split(/[\s'"`;|&<>(){}=,$\\]+/)
  for (const word of new Set(words.slice(0, WORDS_MAX))) {
    const path = word === '' ? undefined : pathOf(place, word.replace(/^~(?=\/)/, place.home))
    if (path === undefined) continue
    const isOurs = path.split('/').some((part) => part.toLowerCase() === STATE_NAME)
    if (isOurs || (place.isThere(path) && !place.isFolder(path))) {
      effects.writes.push({ path, kind: 'file', removes: isOurs })
    }
  }
}

const PROGRAMS: [name: RegExp, flags: RegExp][] = [
  [/^(?:python|pypy)[\d.]*$/, /^-[a-zA-Z]*c$/],
  [/^(?:node|nodejs|bun|deno|tsx)$/, /^(?:-[ep]|-pe|--eval|--print|eval)$/],
  [/^(?:perl|ruby)[\d.]*$/, /^-[a-zA-Z0-9]*[eE]$/],
  [/^(?:php|lua|Rscript|osascript|tclsh)$/, /^-[re]$/],
]

/** The program in another language that a command is given: `python3 -c …`, `node <<EOF`. */
export function codeIn(
  name: string,
  args: readonly (string | undefined)[],
  input?: string,
): string | undefined {
  const [, flags] = PROGRAMS.find(([pattern]) => pattern.test(name)) ?? []
  if (!flags) return undefined
  const at = args.findIndex((each) => flags.test(each ?? ''))
  if (at !== -1) return args.slice(at + 1).join(' ')
  return args.every((each) => each?.startsWith('-')) ? input : undefined
}
