import { useEffect } from 'preact/hooks'
import { now } from '../data/asked.ts'
import { locks, locksChanged, watch } from '../data/locks.ts'
import { span } from './words.ts'

/** How much is left of the lease of a lock, as time and as a bar; nothing, once it is free. */
export function Countdown({ name }: { name: string }) {
  void locksChanged.value
  useEffect(() => watch(name), [name])
  const lock = locks.get(name)
  if (!lock) return null
  const left = Math.max(0, (lock.until_ms - now.value) / 1000)
  const share = Math.min(1, left / lock.ttl_seconds)
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
