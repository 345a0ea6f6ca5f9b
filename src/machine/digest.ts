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

/** Of a request: a UUID of version 7, which sorts behind those that were made before it. */
export function newRequestId(): string {
  const ms = Date.now().toString(16).padStart(12, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${uniqueId().slice(15)}`
}
