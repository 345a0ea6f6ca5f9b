import { randomBytes } from 'node:crypto'
import type { Context, Hono } from 'hono'
import { Refusal } from '../../core/refusal.ts'
import { type Access, type Bearer, callerFor, refuseRole } from '../../operations/access.ts'
import { call } from '../../operations/call.ts'
import { agentId, role, secretHash } from '../../operations/fields.ts'
import { parseInput, type TokenRole } from '../../operations/operation.ts'
import * as tokens from '../../operations/tokens.ts'
import { sha256 } from '../../machine/digest.ts'
import type { Store } from '../../stores/writer/store.ts'
import { askedWith, cookieName } from './caller.ts'
import { readJson } from './guard.ts'

/** How long a link may wait to be opened, and how long a page stays signed in. */
const LINK_SECONDS = 600
const SESSION_SECONDS = 12 * 3600
/** Of links that nobody opens the oldest go first: they do not pile up. */
const LINKS_MAX = 100

interface Link {
  role: TokenRole
  agent: string
  until_ms: number
}

/**
 * Links that sign a browser in, once each. Only hashes are kept, and only in memory: a link is of
 * no use after ten minutes or a restart.
 */
class Links {
  private readonly links = new Map<string, Link>()

  add(hash: string, link: Omit<Link, 'until_ms'>): void {
    const [oldest] = this.links.keys()
    if (this.links.size >= LINKS_MAX && oldest !== undefined) this.links.delete(oldest)
    this.links.set(hash, { ...link, until_ms: performance.now() + LINK_SECONDS * 1000 })
  }

  /** What the link stands for, and from now on nothing. */
  take(hash: string): Link | undefined {
    const link = this.links.get(hash)
    this.links.delete(hash)
    return link && performance.now() < link.until_ms ? link : undefined
  }
}

const LINK = { secret_hash: secretHash, role, for_agent: agentId }

/**
 * Signs pages in and out. A page that came by a link gets a token of its own, which lives in a
 * cookie that no script can read; from then on it is asked for and checked like any other token.
 */
export function addSessions(app: Hono, { store, access }: { store: Store; access: Access }): void {
  const links = new Links()
  app.post('/v1/session/link', async (c) => {
    const bearer = await access.bearerOf(askedWith(c))
    refuseRole(bearer, { name: 'A link to the dashboard', role: 'admin' })
    const { secret_hash, role: of, for_agent } = parseInput(LINK, await readJson(c.req.raw))
    links.add(secret_hash, { role: of, agent: for_agent })
    return c.json({ expires_in_seconds: LINK_SECONDS })
  })
  app.post('/v1/session', async (c) => {
    const { secret } = await readJson(c.req.raw)
    const given = typeof secret === 'string' ? secret : ''
    const link = links.take(sha256(given))
    const kept = link ? await tokenFor(store, link) : given
    const bearer = await access.bearerOf(kept).catch(refuseSecret)
    setCookie(c, kept, SESSION_SECONDS)
    return c.json(shown(bearer))
  })
  app.get('/v1/session', async (c) => {
    const secret = askedWith(c)
    // Nobody is signed in yet: that is no mistake, so it is not answered as one.
    return c.json(secret === undefined ? null : shown(await access.bearerOf(secret)))
  })
  app.post('/v1/session/end', async (c) => {
    const secret = askedWith(c)
    const bearer = await access.bearerOf(secret)
    // A token that was pasted is somebody's, and may be in use elsewhere: who still has it there
    // comes back by itself.
    access.endAll(secret)
    if (isOfLink(bearer.agent)) {
      const caller = callerFor({ ...bearer, role: 'admin' }, undefined)
      await call(store, tokens.revoke, { id: sha256(secret!).slice(0, 12) }, caller)
    }
    setCookie(c, '', 0)
    return c.json({ ended: true })
  })
}

const shown = ({ role: of, agent, scope }: Bearer) => ({ role: of, agent, ...(scope && { scope }) })

const isOfLink = (agent: string) => agent.startsWith('web:')

/** A token for one page, made here because a cookie that scripts cannot read is set here. */
async function tokenFor(store: Store, { role: of, agent }: Link): Promise<string> {
  const secret = `lh_${randomBytes(32).toString('base64url')}`
  const input = {
    secret_hash: sha256(secret),
    role: of,
    for_agent: agent,
    ttl_seconds: SESSION_SECONDS,
  }
  const caller = { agent, given: true, process: null, under: null, admin: true }
  await call(store, tokens.create, input, caller)
  return secret
}

function refuseSecret(error: unknown): never {
  if (!(error instanceof Refusal) || error.code !== 'unauthorized') throw error
  throw new Refusal('unauthorized', 'This link or token does not count: it may have been used', {
    next: 'Links work once, for ten minutes. Get a new one: leasehold up --link',
  })
}

/** Sent to our own calls only, never along with a link from elsewhere. */
function setCookie(c: Context, value: string, seconds: number): void {
  const terms = `Path=/v1; Max-Age=${seconds}; HttpOnly; SameSite=Strict`
  c.header('set-cookie', `${cookieName(c)}=${value}; ${terms}`)
}
