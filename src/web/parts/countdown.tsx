import { now } from '../data/asked.ts'
import { span } from './words.ts'

/** How much of a lease is left, as time and as a bar. */
export function Countdown({ until_ms, ttl_seconds }: { until_ms: number; ttl_seconds: number }) {
  const left = Math.max(0, (until_ms - now.value) / 1000)
  const share = Math.min(1, left / ttl_seconds)
  const tone = left === 0 ? 'is-over' : share < 0.2 ? 'is-low' : ''
  return (
    <span class={`countdown ${tone}`}>
      <span class="countdown-bar" aria-hidden="true">
        <span style={{ width: `${Math.round(share * 100)}%` }} />
      </span>
      <span class="number">{left === 0 ? 'overdue' : span(left)}</span>
    </span>
  )
}
