/** 125 → `2m 05s`: easier to judge at a glance than a time of day. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  if (whole < 60) return `${whole}s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes}m ${String(whole % 60).padStart(2, '0')}s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours}h ${String(minutes % 60).padStart(2, '0')}m`
  return `${Math.floor(hours / 24)}d ${hours % 24}h`
}

export const secondsSince = (at: string, now_ms: number) => (now_ms - Date.parse(at)) / 1000

/** `12s ago`, or the day for what is long past. */
export function ago(at: string, now_ms: number): string {
  const seconds = secondsSince(at, now_ms)
  if (seconds < 1) return 'just now'
  return seconds < 2 * 86_400 ? `${span(seconds)} ago` : dayOf(at)
}

/** Made once: making one costs more than all else that a row of a list needs. */
const formatter = (options: Intl.DateTimeFormatOptions) => {
  const made = new Intl.DateTimeFormat(undefined, options)
  return (at: string | number) => made.format(new Date(at))
}

export const dayOf = formatter({ dateStyle: 'medium', timeStyle: 'short' })

export const clockOf = formatter({ timeStyle: 'medium', hourCycle: 'h23' })

/** `Mon 14:00`: enough to tell one day of a week from another. */
export const shortDay = formatter({
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})

/** 0.25 → `250 ms`, 3.21 → `3.2 s`, 125 → `2m 05s`. */
export function took(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  return seconds < 60 ? `${Math.round(seconds * 10) / 10} s` : span(seconds)
}

/** Stands where a number is not known yet: a nought would be a statement. */
export const UNKNOWN = '–'

/** A sentence of the server with times of day, on the reader's clock. */
export const withClocks = (text: string) =>
  text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => clockOf(at))

export const count = (n: number, one: string, many = `${one}s`) =>
  `${n.toLocaleString()} ${n === 1 ? one : many}`

export const percent = (part: number) => `${Math.round(part * 100)} %`
