/**
 * `node:crypto`, loaded when first needed: reading a store needs none of it, and loading costs
 * about 2 ms of every cold start.
 */
const crypto = () => process.getBuiltinModule('node:crypto')

export function sha256(text: string | Uint8Array): string {
  return crypto().hash('sha256', text)
}

/** An id that nobody else makes. */
export function uniqueId(): string {
  return crypto().randomUUID()
}
