import type { Argument } from './effects.ts'
import { addRemoved, addWrites, type Writer } from './options.ts'

/**
 * What PowerShell's commands write, by their plain names. Its quotes, pipes and redirections are
 * near enough to those of a shell to be read like one; its variables and expressions are not, and
 * what they name is left to the second net.
 */
export const CMDLETS: Record<string, Writer> = {}

const NAMES = {
  first: `set-content add-content clear-content out-file tee-object new-item export-csv
    export-clixml sc ac clc ni`,
  gone: 'remove-item ri del erase',
  both: 'move-item rename-item mi ren',
  second: 'copy-item cpi',
}

const PATHS = /^-(?:literal|file)?path$/i
const TARGETS = /^-(?:destination|newname)$/i
/** Flags without a value. */
const BARE = /^-(?:force|recurse|append|nonewline|confirm|whatif|passthru|noclobber)$/i

/** The words that name files: by their flag, else by their place. */
function read(args: readonly Argument[]): [from: Argument | undefined, to: Argument | undefined] {
  const plain: Argument[] = []
  let from: Argument | undefined
  let to: Argument | undefined
  for (let i = 0; i < args.length; i += 1) {
    const { text = '' } = args[i]!
    if (PATHS.test(text)) from = args[(i += 1)]
    else if (TARGETS.test(text)) to = args[(i += 1)]
    else if (!text.startsWith('-')) plain.push(args[i]!)
    else if (!BARE.test(text)) i += 1
  }
  from ??= plain.shift()
  return [from, to ?? plain.shift()]
}

const only = (arg: Argument | undefined) => (arg ? [arg] : [])

const WAYS: Record<keyof typeof NAMES, Writer> = {
  first: ({ args, place }, effects) => addWrites(effects, place, only(read(args)[0])),
  gone: ({ args, place }, effects) => addRemoved(effects, place, only(read(args)[0])),
  second: ({ args, place }, effects) => addWrites(effects, place, only(read(args)[1])),
  both: ({ args, place }, effects) => {
    const [from, to] = read(args)
    addRemoved(effects, place, only(from))
    addWrites(effects, place, only(to))
  },
}

for (const [way, names] of Object.entries(NAMES)) {
  for (const name of names.split(/\s+/)) CMDLETS[name] = WAYS[way as keyof typeof NAMES]
}
