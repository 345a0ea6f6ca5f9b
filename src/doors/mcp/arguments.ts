import { Refusal } from '../../core/refusal.ts'
import type { Fields } from '../../operations/operation.ts'

export type Arguments = Record<string, unknown>

/** Names that agents already know, and the field each stands for where an operation has that. */
const KNOWN = [
  { said: 'task_id', field: 'id', as: (value: unknown) => textOf(value) },
  { said: 'timeout', field: 'ttl_seconds', as: (value: unknown) => value },
  { said: 'name', field: 'title', as: (value: unknown) => value },
  { said: 'name', field: 'names', as: (value: unknown) => [value] },
] as const

/** Models write `task_id: 42` as readily as `"42"`, and mean the same. */
const textOf = (value: unknown) => (typeof value === 'number' ? String(value) : value)

/** Arguments as a model gave them → the input of an operation, and the agent they name. */
export function readArguments(
  fields: Fields,
  given: Arguments,
): { input: Arguments; agent: unknown } {
  const { agent_id, agent = agent_id, ...input } = given
  if (agent_id !== undefined && agent_id !== agent) throw twice('agent_id', 'agent')
  for (const { said, field, as } of KNOWN) {
    if (!(said in input) || said in fields || !(field in fields)) continue
    const value = as(input[said])
    if (field in input && JSON.stringify(input[field]) !== JSON.stringify(value)) {
      throw twice(said, field)
    }
    delete input[said]
    input[field] = value
  }
  return { input, agent }
}

function twice(said: string, field: string): Refusal {
  return new Refusal('invalid', `${said} and ${field} mean the same, and differ here`, {
    next: `Send only one of them.`,
  })
}
