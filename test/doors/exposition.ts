/** A family of metrics as Prometheus would read it. */
export interface Family {
  type: string
  help: string
  samples: { name: string; labels: Record<string, string>; value: number }[]
}

const NAME = /^[a-z_:][a-z0-9_:]*$/
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y

/**
 * Reads an exposition as strictly as `promtool check metrics` does, and more so: throws on what a
 * scraper would refuse, or a person who looks at names would.
 */
export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line is not ended')
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let family: Family | undefined
  let name = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help, of, said] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (help === 'HELP') {
      name = of!
      if (!NAME.test(name) || families.has(name)) throw new Error(`bad or second family: ${line}`)
      families.set(name, (family = { type: '', help: said!, samples: [] }))
    } else if (help === 'TYPE') {
      const isKnown = ['counter', 'gauge', 'histogram'].includes(said!)
      if (of !== name || family?.type !== '' || !isKnown) throw new Error(`bad type: ${line}`)
      family.type = said!
      if (said === 'counter' && !name.endsWith('_total')) throw new Error(`no _total: ${name}`)
      if (said !== 'counter' && name.endsWith('_total')) throw new Error(`no counter: ${name}`)
    } else {
      const sample = sampleOf(line)
      const base =
        family?.type === 'histogram' ? sample.name.replace(/_(bucket|sum|count)$/, '') : sample.name
      if (!family?.type || base !== name) throw new Error(`not under its family: ${line}`)
      const key = `${sample.name} ${JSON.stringify(sample.labels)}`
      if (seen.has(key)) throw new Error(`twice: ${line}`)
      seen.add(key)
      family.samples.push(sample)
    }
  }
  for (const [each, found] of families) if (found.type === 'histogram') checkHistogram(each, found)
  return families
}

function sampleOf(line: string) {
  const [, name, inside = '', number] = SAMPLE.exec(line) ?? []
  const value = number === '+Inf' ? Infinity : Number(number)
  if (name === undefined || Number.isNaN(value)) throw new Error(`no sample: ${line}`)
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < inside.length) {
    const at = LABEL.lastIndex
    const [, key, text] = LABEL.exec(inside) ?? []
    if (key === undefined || key in labels) throw new Error(`bad labels at ${at}: ${line}`)
    labels[key] = text!.replaceAll(/\\(.)/g, (_, each: string) => (each === 'n' ? '\n' : each))
  }
  return { name, labels, value }
}

/** Buckets rise, in the order of their bounds; the last is +Inf and says the same as the count. */
function checkHistogram(name: string, { samples }: Family): void {
  const buckets = samples.filter((each) => each.name === `${name}_bucket`)
  const bounds = buckets.map(({ labels }) =>
    labels['le'] === '+Inf' ? Infinity : Number(labels['le']),
  )
  const count = samples.find((each) => each.name === `${name}_count`)?.value
  const rises = (values: number[]) => values.every((value, i) => i === 0 || value >= values[i - 1]!)
  const whole =
    rises(bounds) &&
    new Set(bounds).size === bounds.length &&
    bounds.at(-1) === Infinity &&
    rises(buckets.map(({ value }) => value)) &&
    buckets.at(-1)?.value === count &&
    samples.some((each) => each.name === `${name}_sum`)
  if (!whole) throw new Error(`${name} is no histogram: ${JSON.stringify(samples)}`)
}
