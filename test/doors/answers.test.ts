import { expect, test } from 'vitest'
import type * as z from 'zod/mini'
import type { Waiting } from '../../src/core/locks/lock.ts'
import { openApi } from '../../src/doors/http/openapi.ts'
import { operations, type Registered } from '../../src/operations/registry.ts'

type Said<O extends Registered> = Exclude<ReturnType<O['decide']>, Waiting>
type Shown<O extends Registered> = z.output<ReturnType<O['output']>>

/** Operations whose schema says anything else than the type of what they answer. */
type Differing = {
  [
    O in Registered as [Said<O>] extends [Shown<O>]
      ? [Shown<O>] extends [Said<O>]
        ? never
        : O['name']
      : O['name']
  ]: { said: Said<O>; shown: Shown<O> }
}

// The compiler is the test: it names the operations that differ.
export const none: Differing = {}

/** Every `$ref` in a document, and everything that one could mean. */
function refsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => {
    return key === '$ref' ? [String(each)] : refsIn(each)
  })
}

test('OpenAPI says what every operation answers, and leaves no reference open', () => {
  const api = openApi('test') as {
    components: { schemas: Record<string, object> }
    paths: Record<string, { post: { responses: Record<number, { content: object }> } }>
  }
  for (const { name, internal } of operations) {
    if (internal) continue
    const { content } = api.paths[`/v1/${name}`]!.post.responses[200]!
    const { schema } = (content as { 'application/json': { schema: Record<string, unknown> } })[
      'application/json'
    ]
    const says = ['$ref', 'anyOf', 'properties'].some((word) => word in schema)
    expect({ name, says }).toEqual({ name, says: true })
  }
  const known = new Set(Object.keys(api.components.schemas).map((n) => `#/components/schemas/${n}`))
  expect(refsIn(api).filter((ref) => !known.has(ref))).toEqual([])
})
