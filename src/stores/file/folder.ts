import { type BigIntStats, constants, readdirSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { readEpoch } from '../epoch.ts'
import { emptyState, type State } from './document.ts'
import { systemCode } from '../../machine/errors.ts'
import { FileDamage, parse } from './layout.ts'

const STATE_NAME = /^state\.([1-9]\d{0,14})\.json$/

export function statePath(dir: string, number: number): string {
  return join(dir, `state.${number}.json`)
}

/** The side file with the highest epoch stands in the folder itself: see `epoch.ts`. */
export function epochKey(dir: string): string {
  return join(dir, 'state')
}

export interface Listing {
  /** Numbers of the states, highest first. */
  numbers: number[]
  names: string[]
}

/**
 * What is in the folder; a missing one is empty. Listed until two listings agree on the highest
 * state: names come and go meanwhile, and one long listing could miss the newest of them all.
 */
export function list(dir: string): Listing {
  for (let last = listOnce(dir); ;) {
    const now = listOnce(dir)
    if (now.numbers[0] === last.numbers[0]) return now
    last = now
  }
}

function listOnce(dir: string): Listing {
  const names = namesIn(dir)
  const numbers = names.flatMap((name) => {
    const number = STATE_NAME.exec(name)?.[1]
    return number === undefined ? [] : [Number(number)]
  })
  return { names, numbers: numbers.toSorted((a, b) => b - a) }
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}

/** Changes when the file does. Not its ctime: that moves when a second name is removed. */
export function identityOf(stat: BigIntStats): string {
  return `${stat.ino} ${stat.size} ${stat.mtimeNs}`
}

/** What the folder holds: the last good state, and why the highest is not that one, if so. */
export interface Newest {
  highest: number
  identity: string
  /** Absent when there are states, but no good one. */
  state: State | undefined
  damage: string | undefined
}

/** Reads the newest state, or returns `known` if that still is the newest. */
export async function readNewest(dir: string, known?: Newest): Promise<Newest> {
  for (;;) {
    const { numbers } = list(dir)
    const [highest] = numbers
    if (highest === undefined) {
      const state = emptyState(readEpoch(epochKey(dir)))
      return { highest: 0, identity: '', state, damage: undefined }
    }
    if (known?.highest === highest && known.identity === identityNow(dir, highest)) return known
    const found = await lastGood(dir, numbers)
    if (found) return found
  }
}

function identityNow(dir: string, number: number): string | undefined {
  const stat = statSync(statePath(dir, number), { bigint: true, throwIfNoEntry: false })
  return stat && identityOf(stat)
}

/** Undefined when a state was pruned while we looked: then there are newer ones. */
async function lastGood(dir: string, numbers: number[]): Promise<Newest | undefined> {
  const faults: { why: string; identity: string }[] = []
  for (const number of numbers) {
    const read = await readState(dir, number)
    if (!read) return undefined
    const { identity, state, fault } = read
    if (fault !== undefined) faults.push({ why: `state.${number}.json: ${fault}`, identity })
    if (state || number === numbers.at(-1)) {
      const [first] = faults
      const of = first?.identity ?? identity
      return { highest: numbers[0]!, identity: of, state, damage: first?.why }
    }
  }
  return undefined
}

interface Read {
  identity: string
  state: State | undefined
  fault: string | undefined
}

/** One numbered state; undefined when there is no such file. */
export async function readState(dir: string, number: number): Promise<Read | undefined> {
  let file: FileHandle
  try {
    file = await open(statePath(dir, number), constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    if (systemCode(error) !== 'ELOOP') throw error
    return { identity: 'link', state: undefined, fault: 'it is a symbolic link' }
  }
  try {
    const identity = identityOf(await file.stat({ bigint: true }))
    return { identity, ...(await readGood(file, number)) }
  } finally {
    await file.close()
  }
}

async function readGood(file: FileHandle, number: number): Promise<Omit<Read, 'identity'>> {
  try {
    const state = parse(await file.readFile())
    if (state.number === number) return { state, fault: undefined }
    return { state: undefined, fault: `it holds state ${state.number}` }
  } catch (error) {
    if (error instanceof FileDamage) return { state: undefined, fault: error.message }
    if (systemCode(error) === 'EISDIR') return { state: undefined, fault: 'it is a folder' }
    throw error
  }
}
