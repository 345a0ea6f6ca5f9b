/**
 * Something that can be done next. Where an operation does it, the operation and its input stand
 * beside the words, and each door shows them in its own way: a command, a tool call, a button.
 */
export interface Action {
  says: string
  operation?: string
  input?: Record<string, unknown>
}

export type Next = string | Action | readonly (string | Action)[]

/** As data, whichever way a rule has said it; an empty text is nothing to do. */
export function actionsOf(next: Next): Action[] {
  const all: readonly (string | Action)[] = Array.isArray(next) ? next : [next]
  return all.flatMap((each) => {
    if (typeof each === 'string') return each === '' ? [] : [{ says: each }]
    return [each]
  })
}

/** How a door says that an operation is to be called. */
export type Say = (call: { operation: string; input: Record<string, unknown> }) => string

/** As a program would call it that knows operations only: `task.claim {"id":"42"}`. */
export const byName: Say = ({ operation, input }) =>
  Object.keys(input).length === 0 ? operation : `${operation} ${JSON.stringify(input)}`

/** What to do next, as text to read. */
export function nextText(actions: readonly Action[], say: Say = byName): string {
  return actions
    .map(({ says, operation, input = {} }, i) => {
      const text = operation === undefined ? says : `${says}: ${say({ operation, input })}`
      return i + 1 < actions.length && !/[.!?]$/.test(text) ? `${text}.` : text
    })
    .join(' ')
}

/** An answer that says what to do next says it in the words of a door, as a refusal does. */
export function inWordsOf<A extends object>(answer: A, say: Say): A {
  const { actions, next } = answer as { actions?: unknown; next?: unknown }
  if (!Array.isArray(actions) || actions.length === 0 || typeof next !== 'string') return answer
  return { ...answer, next: nextText(actions as Action[], say) }
}
