/** Numbers for people: medians of several rounds, in a table. */

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export const whole = (value: number) => Math.round(value).toLocaleString('en-US')

const times = (ratio: number) => `${ratio.toFixed(2)}×`

/** Left-aligned text in the first column, right-aligned numbers in the others. */
export function printTable(rows: string[][]): void {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  for (const row of rows) {
    const cells = row.map((cell, i) =>
      i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!),
    )
    console.log(`  ${cells.join('   ')}`)
  }
}

/** One line that is written over, on a terminal; elsewhere one line per step. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
  else if (text !== '') process.stderr.write(`${text}\n`)
}

export interface Goal {
  name: string
  ratio: number
  goal: string
  met: boolean
}

export function printGoals(goals: Goal[]): void {
  const rows = goals.map(({ name, ratio, goal, met }) => [
    name,
    times(ratio),
    `goal ${goal}`,
    met ? 'met' : 'MISSED',
  ])
  if (rows.length > 0) printTable(rows)
}
