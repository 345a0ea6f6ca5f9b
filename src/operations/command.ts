import { argument } from '../core/quote.ts'
import type { Say } from '../core/next.ts'
import { type Fields, flagOf } from './operation.ts'
import { operationNamed } from './registry.ts'

/** `[paths…]` is of the field `paths`. */
export const fieldOf = (word: string) => word.replaceAll(/[[\]\u2026]/g, '')

/** A call as it is typed at a command line: `leasehold task claim 42 --queued`. */
export const asCommand: Say = ({ operation: name, input }) => {
  const { command = name.replace('.', ' '), input: known = {} } = operationNamed.get(name) ?? {}
  const fields: Fields = known
  const [noun, verb, ...positional] = command.split(' ')
  const places = positional.map(fieldOf)
  const words = [noun, verb].filter((each) => each !== undefined)
  for (const place of places) words.push(...textsOf(input[place]).map(argument))
  for (const [field, value] of Object.entries(input)) {
    if (places.includes(field)) continue
    const [flag = '', takes = ''] =
      (fields[field] && flagOf(field, fields[field]))?.split(' ') ?? []
    if (flag === '') continue
    const unit = takes.startsWith('<duration') ? 's' : ''
    if (takes === '') words.push(flag)
    else words.push(...textsOf(value).flatMap((each) => [flag, argument(each + unit)]))
  }
  return `leasehold ${words.join(' ')}`
}

const textsOf = (value: unknown) => (value === undefined ? [] : [value].flat().map(String))
