import type { Context } from 'hono'
import * as z from 'zod/mini'
import type { Caller } from '../../core/caller.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Bearer } from '../../operations/access.ts'
import { field, parseInput } from '../../operations/operation.ts'
import * as s from '../../operations/schemas.ts'
import { ownProcess } from '../../machine/process.ts'

const KNOWN = {
  given: field(s.yesOrNo, 'Whether the agent id was given, not defaulted.'),
  process: field(() => s.nullable(s.process()), 'The process that asks.'),
  under: field(
    () => s.nullable(z.strictObject({ lock: s.plain(512), fence: s.count() })),
    'The lease that it runs under.',
  ),
  admin: field(s.yesOrNo, 'Whether it asks as an admin.'),
}

/**
 * What our own command line knows about the process that asks. Only believed of an admin: that is
 * this login, which could write the store itself.
 */
export function callerHeader(text: string | undefined, bearer: Bearer): Partial<Caller> {
  const waiter = ownProcess()
  if (text === undefined || bearer.role !== 'admin') return { waiter }
  const known = parseInput(KNOWN, jsonIn(text))
  return known.process ? known : { ...known, waiter }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('invalid', 'The header leasehold-caller is not JSON', {
      next: 'Leave it out: it is for the command line of this version.',
    })
  }
}

/**
 * The secret that a request came with: the token in its header, or else the one that a page of ours
 * keeps in a cookie. This is the only way in; what it is worth, `Access` says.
 */
export function askedWith(c: Context): string | undefined {
  const [, token] = /^Bearer (\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
  if (token !== undefined) return token
  const begin = `${cookieName(c)}=`
  const pairs = (c.req.header('cookie') ?? '').split('; ')
  const secret = pairs.find((pair) => pair.startsWith(begin))?.slice(begin.length)
  if (secret) refuseOtherPages(c)
  return secret
}

/** Cookies are shared by all ports of a host: each server has one of its own. */
export function cookieName(c: Context): string {
  return `leasehold_${c.req.header('host')?.split(':').at(-1)}`
}

/**
 * A browser sends the cookie by itself, so a page of another port could ask with it. Such a page
 * cannot hide where it comes from.
 */
function refuseOtherPages(c: Context): void {
  const site = c.req.header('sec-fetch-site')
  const isOurs = site === undefined || site === 'same-origin' || site === 'none'
  if (isOurs && (c.req.method === 'GET' || c.req.header('origin') !== undefined)) return
  throw new Refusal('forbidden', 'A cookie counts only for the page that this server serves', {
    next: 'Send "Authorization: Bearer TOKEN" instead.',
  })
}
