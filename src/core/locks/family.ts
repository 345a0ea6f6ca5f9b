import { admits } from '../caller.ts'
import type { View } from '../view.ts'

/** `agent`, and every agent nested under it that was seen here: an agent that holds was seen. */
export function* family(view: View, agent: string): Generator<string> {
  yield agent
  for (const { id } of view.scan('agents', '', { order: `${agent}/`, key: '' })) {
    if (!admits(agent, id)) return
    yield id
  }
}
