import * as z from 'zod/mini'
import type { Caller } from '../../core/caller.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Bearer } from '../../operations/access.ts'
import { field, parseInput } from '../../operations/operation.ts'
import * as s from '../../operations/schemas.ts'
import { ownProcess } from '../../stores/process.ts'

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
