import { hintOf } from '../../core/hint.ts'
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

/** Ours, and those that the driver knows: with a misspelt one it would be another store. */
const PARAMETERS = new Set([
  'schema',
  ...'user password host port database dbname ssl sslmode sslcert sslkey sslrootcert'.split(' '),
  ...'sslnegotiation uselibpqcompat application_name fallback_application_name'.split(' '),
  ...'client_encoding options keepalives keepalives_idle connect_timeout channel_binding'.split(
    ' ',
  ),
  ...'connectionTimeoutMillis statement_timeout query_timeout lock_timeout'.split(' '),
  ...'idle_in_transaction_session_timeout target_session_attrs encoding'.split(' '),
])

function unknown(name: string): Refusal {
  const what = `LEASEHOLD_STORE has a parameter that nobody knows: ${name}`
  return new Refusal('invalid', what, { next: `Leave it out; ${hintOf(name, [...PARAMETERS])}` })
}

/** Takes `postgres://…` apart. Refuses (`invalid`) what is no address, without repeating it. */
export function addressOf(text: string): Address {
  if (!URL.canParse(text)) {
    throw new Refusal('invalid', 'LEASEHOLD_STORE is not an address of a PostgreSQL database', {
      next: 'Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters as %XX.',
    })
  }
  const url = new URL(text)
  for (const name of url.searchParams.keys()) if (!PARAMETERS.has(name)) throw unknown(name)
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
