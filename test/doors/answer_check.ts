import { expect } from 'vitest'
import { operationNamed } from '../../src/operations/registry.ts'

/** An answer is what its operation's schema says: no field is missing, wrong, or unheard of. */
export function expectAnswer(name: string, answer: unknown): void {
  // As it is on the wire, whichever way it came.
  const said: unknown = JSON.parse(JSON.stringify(answer))
  const { error } = operationNamed.get(name)!.output().safeParse(said)
  const wrong = error?.issues.map(({ path, message, ...rest }) => {
    return { path: path.join('.'), message, keys: (rest as { keys?: string[] }).keys }
  })
  expect({ name, wrong }, JSON.stringify(said)).toEqual({ name, wrong: undefined })
}
