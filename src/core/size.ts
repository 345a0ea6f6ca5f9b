/** About how many bytes a value takes, by the text in it: quick, and near enough for a bound. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let size = 0
  // Not by entries: they would be made each time.
  for (const key in value) size += 8 + key.length + sizeOf(value[key as keyof typeof value])
  return size
}
