import { join } from 'node:path'
import { planted } from '../../core/planted.ts'
import { Refusal } from '../../core/refusal.ts'
import { sha256 } from '../../machine/digest.ts'
import type { Head } from '../port.ts'
import { refuseNewerSchema } from '../successor.ts'
import type { Address } from './address.ts'
import type { TextRow } from './driver.ts'
import { SCHEMA_VERSION } from './migrate.ts'
import { refuseAnothers } from './pooled.ts'
import { HEAD } from '../writer/chain.ts'
import { isBehind, type Numbers, Witness } from '../witness.ts'

export interface FoundHead {
  head: Head
  commits: number
  clock_ms: number
  isDurable: boolean
}

export function notDurable(shown: string): Refusal {
  return new Refusal('unavailable', `${shown} has synchronous_commit off for this session`, {
    next: 'An answer must be on disk before it is given: switch it on, also in your pooler.',
  })
}

/** What `beginWriting` and `beginReading` answer in the session `pid`. */
export function headOf([row]: TextRow[], shown: string, pid: string): FoundHead {
  if (!row) {
    throw new Refusal('damaged', `The store ${shown} has lost its head row`, {
      next: 'Restore a backup of the database, then: leasehold db restore --raise-epoch',
    })
  }
  const texts = new Set<keyof Head>(['hash', 'boot'])
  const fields = HEAD.map((name, i) => [name, texts.has(name) ? row[i] : Number(row[i])])
  const [commits, clock_ms, durability, mark, schema] = row.slice(HEAD.length)
  refuseAnothers(mark, pid)
  refuseNewerSchema(shown, Number(schema), SCHEMA_VERSION)
  return {
    head: Object.fromEntries(fields) as Head,
    commits: Number(commits),
    clock_ms: Number(clock_ms),
    isDurable: durability !== 'off',
  }
}

/**
 * The newest commit that was seen, by this process or, as far as a file in the state folder tells,
 * by another one of this host. A schema that was dropped and made anew, put back from a dump, or
 * promoted from a standby that lagged, looks sound: that there was more is known to those who saw
 * it.
 */
export class SeenHead {
  private head: Numbers | undefined

  constructor(private readonly witness?: Witness) {}

  /** What anything that begins now must find, or something newer. */
  get newest(): Numbers | undefined {
    return this.head ?? this.witness?.read().committed
  }

  /**
   * Refuses (`damaged`) a head that is behind `before`, which was the newest before the database
   * was asked: while its answer is under way, commits of our own may be seen. Else remembers it.
   */
  look<Of extends { head: Head }>(found: Of, before: Numbers | undefined, shown: string): Of {
    const { head } = found
    if (before && isBehind(head, before) && !planted('S3 witness'))
      throw putBack(head, before, shown)
    this.keep(head)
    return found
  }

  /** Of answers that cross, the newest stays. */
  keep(head: Numbers): void {
    if (this.head && !isBehind(this.head, head)) return
    this.head = head
    this.witness?.saw(head)
  }
}

export function putBack({ position }: Numbers, seen: Numbers, shown: string): Refusal {
  return new Refusal('damaged', `${shown} was put back to an earlier state, or begun anew`, {
    next: 'If that is meant, end all leases of before: leasehold db restore --raise-epoch',
    details: { seen: seen.position, found: position },
  })
}

/** What this host has seen of a database; `folder` is that of its state. */
export const witnessOf = (folder: string, { shown }: Address) =>
  new Witness(join(folder, `postgres.${sha256(shown).slice(0, 8)}`))
