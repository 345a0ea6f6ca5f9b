import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A box, and how large it is: known before it is first seen, or a hand would be a step behind. */
export function useSized(given?: { current: HTMLDivElement | null }) {
  const own = useRef<HTMLDivElement>(null)
  const box = given ?? own
  const size = useSignal({ width: 600, height: 600 })
  useLayoutEffect(() => {
    const { clientWidth: width, clientHeight: height } = box.current!
    size.value = { width, height }
    const observer = new ResizeObserver(([entry]) => (size.value = entry!.contentRect))
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  return { box, size: size.value }
}
