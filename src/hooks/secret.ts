import { basename, dirname, resolve } from 'node:path'
import { planted } from '../core/planted.ts'
import { word } from '../core/quote.ts'
import { realpathOf } from '../machine/checkout.ts'
import { ADMIN, isServed } from '../reach/server_file.ts'
import { fieldsIn, type HookCall, type HookFields } from './protocol.ts'
import { expand } from './targets.ts'

/*
 * The secret that a server leaves for this login's own command line makes an admin of who sends it.
 * So agents do not read it, by whichever tool or command.
 */

const DEPTH_MAX = 4
const PATH_MAX = 4096
/** Each is looked up on disk. */
const WORDS_MAX = 2_000
/** What takes files out of a folder when it is told the folder. */
const TAKES_ALL = /\b(?:cp|tar|rsync|zip|scp|cpio|7z|grep|rg|find|cat|xargs|mv|ln)\b/

const LEFT_OUT = /(?:--exclude(?:-dir)?[= ]|-x )['"]?([^\s'"]+)/g

/** Why a call must not happen that would read the secret; undefined: it would not. */
export function secretRead(
  call: Pick<HookCall, 'command' | 'cwd'>,
  input: HookFields,
): { text: string; path: string } | undefined {
  if (planted('R50')) return undefined
  const path = secretIn(call, input)
  if (path === undefined) return undefined
  const text =
    `Leasehold: ${word(path)} is not for agents to read: with it, anybody is an admin. ` +
    'Next: Ask by commands (leasehold --help), which need no secret; the rest is for your user.'
  return { path, text }
}

function secretIn({ command, cwd }: Pick<HookCall, 'command' | 'cwd'>, input: HookFields) {
  const named = textsIn(input).find((text) => isSecret(resolve(cwd, text.trim())))
  if (named !== undefined || command === undefined) return named
  const split = command.split(/[\s'"`()<>|;&=@,{}]+/)
  const words = [...new Set(split)].filter(Boolean).slice(0, WORDS_MAX)
  const isNear =
    /\b(?:find|fd)\b/.test(command) ||
    words.some((each) => isServed(realpathOf(resolve(cwd, each))))
  const leftOut = new Set([...command.matchAll(LEFT_OUT)].map(([, each]) => each))
  return words.find((each) => {
    const path = resolve(cwd, each)
    if (isSecret(path)) return true
    if (basename(each) === ADMIN) return isNear || /[$~*?[]/.test(each)
    if (/[*?[]/.test(each)) return expand({ path, kind: 'glob' }).some((one) => isSecret(one.path))
    return TAKES_ALL.test(command) && !leftOut.has(each) && isServed(realpathOf(path))
  })
}

function isSecret(path: string): boolean {
  const real = realpathOf(path)
  return basename(real) === ADMIN && isServed(dirname(real))
}

/** Every text that could be a path. */
function textsIn(given: HookFields, depth = 0): string[] {
  return Object.values(given).flatMap((value): string[] => {
    const each: unknown[] = Array.isArray(value) ? value : [value]
    return each.flatMap((one) => {
      if (typeof one === 'string') return one.length < PATH_MAX && !one.includes('\n') ? [one] : []
      return depth < DEPTH_MAX ? textsIn(fieldsIn(one), depth + 1) : []
    })
  })
}
