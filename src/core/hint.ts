/** The known name that `name` was probably meant to be, or all of them when none is near. */
export function hintOf(name: string, known: readonly string[]): string {
  // What is forgotten most is the unit: `ttl` is nearer to `ttl_seconds` than to any short name.
  const farOf = (each: string) =>
    name.length > 2 && each.includes(name) ? 1 : distanceOf(name.slice(0, 64), each)
  const best = known.toSorted((a, b) => farOf(a) - farOf(b))[0] ?? ''
  return farOf(best) <= Math.max(name.length, best.length) / 2
    ? `did you mean ${best}?`
    : `there are ${known.join(', ')}`
}

/** How many letters have to be put in, taken out or replaced to make one word the other. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, letter] of Array.from(a).entries()) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (letter === b[j] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
