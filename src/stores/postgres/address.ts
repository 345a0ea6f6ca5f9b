import { Refusal } from '../../core/refusal.ts'
import { sha256 } from '../../machine/digest.ts'

/** Which database and schema are meant, and what to call them where others may read along. */
export interface Address {
  /** For the driver; it may contain a password and is shown to nobody. */
  url: string
  schema: string
  /** The schema as it is written in statements. */
  quoted: string
  /** The same without the password. */
  shown: string
}

const DEFAULT_SCHEMA = 'leasehold'
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/

export function isPostgres(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text)
}

/** Takes `postgres://…` apart. Refuses (`invalid`) what is no address, without repeating it. */
export function addressOf(text: string): Address {
  if (!URL.canParse(text)) {
    throw new Refusal('invalid', 'LEASEHOLD_STORE is not an address of a PostgreSQL database', {
      next: 'Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters as %XX.',
    })
  }
  const url = new URL(text)
  const schema = url.searchParams.get('schema') ?? DEFAULT_SCHEMA
  if (!SCHEMA.test(schema)) {
    throw new Refusal('invalid', `schema=${schema} is not a name for a schema`, {
      next: 'Use lower-case letters, digits and _, not beginning with a digit, up to 63.',
    })
  }
  url.searchParams.delete('schema')
  const shown = new URL(url)
  shown.password = ''
  shown.search = ''
  if (schema !== DEFAULT_SCHEMA) shown.searchParams.set('schema', schema)
  return { url: url.href, schema, quoted: `"${schema}"`, shown: shown.href }
}

/**
 * The key of the lock that makes writers wait for each other: 64 bits of a hash. Advisory locks are
 * a database's own, so the schema alone has to be in it.
 */
export function lockKey(schema: string, what: 'write' | 'migrate'): string {
  const hash = sha256(`leasehold ${what}\n${schema}`)
  return BigInt.asIntN(64, BigInt(`0x${hash.slice(0, 16)}`)).toString()
}

/** Where commits to a schema are announced. */
export function channelOf(schema: string): string {
  return `leasehold_${sha256(schema).slice(0, 16)}`
}
