type Labels = Record<string, string>

interface Sample {
  value: number
  labels?: Labels
}

/** The content type of what `Exposition` writes. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Metrics as Prometheus reads them: one family after the other, each with its help and type. */
export class Exposition {
  private readonly lines: string[] = []

  counter(name: string, help: string, samples: number | Sample[]): void {
    this.family(name, help, 'counter', samples)
  }

  gauge(name: string, help: string, samples: number | Sample[]): void {
    this.family(name, help, 'gauge', samples)
  }

  /** `buckets` counts values up to each bound, and last those above all; here they add up. */
  histogram(name: string, help: string, bounds: number[], buckets: number[], sum: number): void {
    this.head(name, help, 'histogram')
    let count = 0
    for (const [i, n] of buckets.entries()) {
      count += n
      this.sample(`${name}_bucket`, count, { le: i < bounds.length ? String(bounds[i]) : '+Inf' })
    }
    this.sample(`${name}_sum`, sum)
    this.sample(`${name}_count`, count)
  }

  text(): string {
    return `${this.lines.join('\n')}\n`
  }

  private family(name: string, help: string, type: string, samples: number | Sample[]): void {
    this.head(name, help, type)
    const all = typeof samples === 'number' ? [{ value: samples }] : samples
    for (const { value, labels } of all) this.sample(name, value, labels)
  }

  private head(name: string, help: string, type: string): void {
    this.lines.push(`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`)
  }

  private sample(name: string, value: number, labels: Labels = {}): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${quoted(text)}"`)
    this.lines.push(`${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`)
  }
}

const escaped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
const quoted = (text: string) => escaped(text).replaceAll('"', '\\"')
