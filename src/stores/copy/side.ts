import { type AnyRow, SCHEMA, type TableName } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import { machine } from '../../machine/machine.ts'
import { instantOf } from '../writer/clock.ts'
import { backendOf, type Place } from '../open.ts'
import {
  Again,
  type Change,
  CommitUnknown,
  type Contents,
  type CopyBackend,
  type Head,
} from '../port.ts'
import { addressOf } from '../postgres/address.ts'
import { changedMeanwhile, unknownOutcome } from './refusals.ts'

/**
 * One end of a copy: a transaction on a store, which keeps other writers out where it can. What is
 * applied can be read back at once; others see it after `commit`, all together. Closing without
 * that leaves the store as it was.
 */
export class SideOfCopy {
  readonly isDatabase: boolean
  readonly shown: string
  /** Names a clock that is not this machine's; undefined where store time is our own. */
  readonly clock: string | undefined
  /** Store time when it was begun. */
  readonly now: number

  private constructor(
    { path, url }: Place,
    private readonly backend: CopyBackend,
    /** As it was found, with `clock_ms` of then where the store has a clock of its own. */
    readonly head: Head,
  ) {
    this.isDatabase = backend.isDatabase
    this.now = instantOf(head, machine).instant.now
    this.shown = path
    this.clock = url && new URL(addressOf(url).url).host
  }

  /** Brings an older store up to date, and refuses a folder that is not safe. */
  static async begin(place: Place): Promise<SideOfCopy> {
    const backend = backendOf(place, true)
    try {
      return new SideOfCopy(place, backend, await backend.begin())
    } catch (error) {
      await backend.close()
      throw error
    }
  }

  /** What the transaction sees now. */
  contents(): Contents {
    return this.backend.contents()
  }

  /** Whether somebody else has committed: no lock keeps others from publishing a file. */
  isChanged(): Promise<boolean> | boolean {
    const { epoch, position, last_ms } = this.head
    return this.backend.snapshot((_, now) => {
      return now.epoch !== epoch || now.position !== position || now.last_ms !== last_ms
    })
  }

  async apply(change: Partial<Change>): Promise<void> {
    await this.attempt(() => this.backend.apply(change))
  }

  async commit({ clock_ms: _, ...head }: Head): Promise<void> {
    const done = await this.attempt(() => this.backend.commit({ changes: {}, events: [], head }))
    if (done === 'again') throw changedMeanwhile(this.shown)
  }

  private async attempt<T>(step: () => Promise<T> | T): Promise<T> {
    try {
      return await step()
    } catch (error) {
      if (error instanceof CommitUnknown) throw unknownOutcome(this.shown, error.message)
      if (error instanceof Again) throw changedMeanwhile(this.shown)
      throw error
    }
  }

  async close(): Promise<void> {
    await this.backend.rollback()
    await this.backend.close()
  }
}
/**
 * A row with exactly the fields of its table, in their order. Documents of file stores may lack
 * fields that are younger than they are, and may have some that no other store could keep: those
 * are refused (`invalid`), not dropped.
 */
export function wholeRow(table: TableName, found: AnyRow): AnyRow {
  const { columns, key } = SCHEMA[table]
  const fields = found as unknown as Record<string, unknown>
  const strange = Object.keys(fields).find((name) => !Object.hasOwn(columns, name))
  if (strange !== undefined) {
    throw new Refusal(
      'invalid',
      `${table} ${fields[key] as string} has a field that we do not know: ${strange}`,
      {
        next: 'Copying would lose it. Take it out of the source, or upgrade leasehold.',
      },
    )
  }
  const values = Object.entries(columns).map(([name, { kind }]) => [
    name,
    fields[name] ?? (kind === 'bool' ? false : null),
  ])
  return Object.fromEntries(values) as AnyRow
}
