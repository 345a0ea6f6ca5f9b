import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { clockOf } from '../parts/words.ts'
import { theme } from '../theme.ts'

/** One line of a chart: its name, its colour by the name the theme has for it, and its values. */
export interface Line<P> {
  label: string
  tone: string
  pick: (point: P) => number | null
}

interface ChartProps<P extends { at: string }> {
  title: string
  points: P[]
  lines: Line<P>[]
}

const HEIGHT = 220

export function Chart<P extends { at: string }>({ title, points, lines }: ChartProps<P>) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const place = box.current!
    const data: uPlot.AlignedData = [
      points.map(({ at }) => Date.parse(at) / 1000),
      ...lines.map(({ pick }) => points.map(pick)),
    ]
    const plot = new uPlot(optionsFor(lines, place.clientWidth), data, place)
    const observer = new ResizeObserver(() => {
      plot.setSize({ width: place.clientWidth, height: HEIGHT })
    })
    observer.observe(place)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [points, theme()])
  const last = points.at(-1)!
  const says = lines.map(({ label, pick }) => `${label} ${pick(last) ?? 0}`).join(', ')
  return <div ref={box} class="chart" role="img" aria-label={`${title}, at the end: ${says}`} />
}

const timeOf = (seconds: number) => clockOf(seconds * 1000)

function optionsFor<P>(lines: Line<P>[], width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const axis = {
    stroke: colour('dim'),
    grid: { stroke: colour('line'), width: 1 },
    ticks: { stroke: colour('line'), width: 1 },
  }
  return {
    width,
    height: HEIGHT,
    cursor: { y: false },
    legend: { live: false },
    padding: [14, 44, 0, 0],
    axes: [
      { ...axis, space: 80, values: (_, ticks) => ticks.map(timeOf) },
      { ...axis, size: 44 },
    ],
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    series: [
      {},
      ...lines.map(({ label, tone }) => {
        return { label, stroke: colour(tone), width: 2, points: { show: false } }
      }),
    ],
  }
}
