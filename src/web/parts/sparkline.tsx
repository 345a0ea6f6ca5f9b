/** How something went, as small as a word. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return <span class="spark" />
  const top = Math.max(...values, 1)
  const at = values.map((value, i) => {
    return `${((i / (values.length - 1)) * 100).toFixed(1)} ${(22 - (value / top) * 20).toFixed(1)}`
  })
  return (
    <svg
      class="spark"
      viewBox="0 0 100 24"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="spark-area" d={`M0 24L${at.join('L')}L100 24z`} />
      <path class="spark-line" d={`M${at.join('L')}`} />
    </svg>
  )
}
