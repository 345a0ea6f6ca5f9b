import type { Bearer } from '../../operations/access.ts'
import type { Store } from '../../stores/store.ts'

export function mcpHandler(_store: Store, _version: string) {
  return async (_request: Request, _bearer: Bearer): Promise<Response> => new Response(null, { status: 501 })
}
