/**
 * The union of two JSON texts: objects by their fields, lists as sets, down through all levels.
 * The version that both grew from settles the rest, if it is known: the side that changed a value
 * wins, and what one side removed is gone, unless the other changed it. If it is not known, nothing
 * is dropped, since nobody can tell what was removed from what was never there.
 */

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

const DEPTH_MAX = 100

/** More digits than this are not the same number any more once they were read. */
const LONG_NUMBER = /(?<![\d."\\])-?\d[\d.]{15,}/

class Apart extends Error {}

/**
 * Undefined where there is none that is clean: not JSON on both sides, both changed a value, or one
 * removed what the other changed.
 */
export function unionOf(base: string | null, ours: string, theirs: string): string | undefined {
  const [o, t] = [parsed(ours), parsed(theirs)]
  const isUnion = (isObject(o) && isObject(t)) || (Array.isArray(o) && Array.isArray(t))
  if (o === undefined || t === undefined || !isUnion) return undefined
  try {
    const merged = union(base === null ? undefined : parsed(base), o, t, 0)
    const isTall = ours.includes('\n') || theirs.includes('\n')
    return JSON.stringify(merged, null, isTall ? 2 : undefined)
  } catch (error) {
    if (error instanceof Apart) return undefined
    throw error
  }
}

function parsed(text: string): Json | undefined {
  if (LONG_NUMBER.test(text)) return undefined
  try {
    const value = JSON.parse(text) as Json
    // What cannot be walked cannot be written either.
    return isDeep(value, 0) ? undefined : value
  } catch {
    return undefined
  }
}

function isDeep(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth > DEPTH_MAX || Object.values(value).some((each) => isDeep(each, depth + 1))
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function union(base: Json | undefined, ours: Json, theirs: Json, depth: number): Json {
  if (isObject(ours) && isObject(theirs)) return unionOfFields(base, ours, theirs, depth)
  if (Array.isArray(ours) && Array.isArray(theirs)) return unionOfItems(base, ours, theirs)
  const [b, o, t] = [base, ours, theirs].map((each) => each !== undefined && canonical(each))
  if (o === t || b === t) return ours
  if (b === o) return theirs
  throw new Apart()
}

function unionOfFields(
  base: Json | undefined,
  ours: JsonObject,
  theirs: JsonObject,
  depth: number,
) {
  const mapOf = (value: Json | undefined) => new Map(Object.entries(isObject(value) ? value : {}))
  const [before, mine, others] = [mapOf(base), mapOf(ours), mapOf(theirs)]
  const fields = new Map<string, Json>()
  for (const name of new Set([...mine.keys(), ...others.keys()])) {
    const [was, o, t] = [before.get(name), mine.get(name), others.get(name)]
    const left = o === undefined ? t! : o
    if (o !== undefined && t !== undefined) fields.set(name, union(was, o, t, depth + 1))
    // Only one side has it: it is new, or the other side removed it.
    else if (was === undefined) fields.set(name, left)
    else if (canonical(was) !== canonical(left)) throw new Apart()
  }
  // Not by assignment: a field may be called __proto__.
  return Object.fromEntries(fields)
}

/** An item has no name, so one that was changed is one removed and one added. */
function unionOfItems(base: Json | undefined, ours: Json[], theirs: Json[]): Json[] {
  const setOf = (value: Json | undefined) =>
    new Set(Array.isArray(value) ? value.map(canonical) : [])
  const [before, mine, others] = [setOf(base), setOf(ours), setOf(theirs)]
  const items = new Map<string, Json>()
  for (const each of [...ours, ...theirs]) {
    const name = canonical(each)
    const isRemoved = before.has(name) && !(mine.has(name) && others.has(name))
    if (!isRemoved && !items.has(name)) items.set(name, each)
  }
  return [...items.values()]
}

/** The same text for the same value, whatever the order of fields. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join()}}`
}
