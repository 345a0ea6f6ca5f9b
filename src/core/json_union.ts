/**
 * The union of two JSON texts: objects by their fields, lists as sets, down through all levels.
 * Nothing that either side has is dropped, so a removal does not survive a change of the other
 * side. Two values for one thing are settled by the base: whoever changed it is followed.
 */

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

const DEPTH_MAX = 100

/** More digits than this are not the same number any more once they were read. */
const LONG_NUMBER = /(?<![\d."\\])-?\d[\d.]{15,}/

class Apart extends Error {}

/** Undefined where there is none that is clean: not JSON on both sides, or both changed a value. */
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
  if (Array.isArray(ours) && Array.isArray(theirs)) return unionOfItems(ours, theirs)
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
  const fields = new Map<string, Json>(Object.entries(ours))
  const before = isObject(base) ? new Map(Object.entries(base)) : new Map<string, Json>()
  for (const [name, value] of Object.entries(theirs)) {
    const mine = fields.get(name)
    const both = mine === undefined ? value : union(before.get(name), mine, value, depth + 1)
    fields.set(name, both)
  }
  // Not by assignment: a field may be called __proto__.
  return Object.fromEntries(fields)
}

function unionOfItems(ours: Json[], theirs: Json[]): Json[] {
  const items = new Map<string, Json>()
  for (const each of [...ours, ...theirs]) {
    const name = canonical(each)
    if (!items.has(name)) items.set(name, each)
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
