import { argument, quoted, word } from '../core/quote.ts'
import { nextText, type Say } from '../core/next.ts'
import { isRefusal, type Refusal } from '../core/refusal.ts'
import type { Conflict } from './context.ts'

const SHOWN_MAX = 5

/** What a refused agent should do. It will look for a way round: say there is none. */
export const INSTEAD =
  'Work on other files and try again later, or tell your user: it is free when its holder has ' +
  'committed it, ends its turn or lets it go, or when nothing was heard of its holder until ' +
  'then. Do not write it in another way: that is refused too.'

/**
 * Why an edit must not happen: what, why, what to do next. All of it the first time, and a line to
 * one who was `told` before.
 */
export function denialOf(refusal: Refusal, told: () => boolean): string {
  const { code, message, actions } = refusal
  const own = nextText(actions, reserving)
  if (code !== 'held') return `Leasehold: ${message}. Next: ${own}`
  const { path, circle, by_you, holder, reserved, expires_at } = refusal.details
  const look = typeof path === 'string' ? ` ${askingText(path)}` : ''
  const isSaid = by_you === true || circle !== undefined
  if (!isSaid && typeof reserved === 'string' && told()) {
    const what = path === reserved ? word(reserved) : `${word(String(path))} (${word(reserved)})`
    const whose = `reserved by ${word(String(holder))} until ${String(expires_at)}`
    return `Leasehold: ${what} is ${whose}. Next: Other files first, as you were told.`
  }
  const next = isSaid ? own : `${INSTEAD}${look}`
  return `Leasehold: ${message}. Next: ${next}`
}

/** Operations of `reserve`, which a refused edit is told of: to load the table of all takes time. */
const reserving: Say = ({ operation, input }) => {
  const paths = [input['paths']].flat().map(String).map(argument)
  return ['leasehold', ...operation.split('.'), ...paths].join(' ')
}

const askingText = (path: string) =>
  `To see whether it is free: leasehold reserve check ${argument(path)}. ` +
  `To ask its holder for it: leasehold reserve ask ${argument(path)} --reason WHY`

/** Why a command must not run that would touch what others have. */
export function conflictText(what: string, conflicts: readonly Conflict[]): string {
  const lines = conflicts.slice(0, SHOWN_MAX).map(({ path, holder, expires_at, reason }) => {
    const why = reason ? `, for: ${quoted(reason)}` : ''
    return `${word(path)} (reserved by ${word(holder)} until ${expires_at}${why})`
  })
  const more = conflicts.length > SHOWN_MAX ? ` and ${conflicts.length - SHOWN_MAX} more` : ''
  return `Leasehold: ${what} ${lines.join(', ')}${more}`
}

/** Why an edit must wait: a command of another would take it back before it is seen by anybody. */
export const takenBackText = (by: string) =>
  `Leasehold: ${word(by)} is having git take back changes in this checkout at this moment, and ` +
  'this one might go with them. Next: Try again in a moment.'

/** Why a file must not be written whose name no reservation can have. */
export const nameText = (name: string, { message }: Refusal) =>
  `Leasehold: ${word(name)} cannot be reserved: ${message}. Next: Give the file another name.`

/** Why an edit is refused of which nobody can say what it changes. */
export const unreadText = (why: string) =>
  `Leasehold: ${why} that could be looked up, so nobody can say whether it is free. ` +
  'Next: Write it in the form that the tool documents, with the name of the file on its own line.'

/** What is said of a tool that we do not know. */
export const unknownText = (tool: string) =>
  `Leasehold does not know the tool ${word(tool)}, and nobody can say which files it writes. ` +
  'Next: Edit files with the tools that name them, or reserve first what it will write: ' +
  'leasehold reserve add GLOB'

export const unreachableText = (error: unknown) => {
  const why = error instanceof Error ? error.message : String(error)
  const isToken = isRefusal(error, 'unauthorized')
  return `Leasehold cannot be asked whether this is safe: ${why}${isToken ? WHICH : ''}`
}

const WHICH = ' (that in LEASEHOLD_TOKEN, for the server at LEASEHOLD_URL or of this folder)'
