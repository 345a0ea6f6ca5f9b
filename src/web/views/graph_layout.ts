/** `from` waits for `lock`, which `to` has. */
export interface Edge {
  from: string
  to: string
  lock: string
}

export interface Node {
  name: string
  x: number
  y: number
  w: number
}

interface Line {
  key: string
  path: string
  x: number
  y: number
  text: string
}

const LETTER = 7.4
const COLUMN_GAP = 150
const ROW = 64
const EDGE = 24

const widthOf = (name: string) => Math.max(72, name.length * LETTER + 24)

/** Places agents and arrows: a cycle as a ring, all else in columns, holders at the right. */
export function layOut(edges: Edge[], isRing: boolean) {
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))]
  const nodes = isRing ? ring(names) : columns(names, edges)
  const at = new Map(nodes.map((node) => [node.name, node]))
  const lines = edges.map((edge) => lineOf(edge, at.get(edge.from)!, at.get(edge.to)!, isRing))
  const width = Math.max(...nodes.map(({ x, w }) => x + w / 2), 0) + EDGE
  const height = Math.max(...nodes.map(({ y }) => y), 0) + EDGE + (isRing ? 40 : 20)
  return { nodes, lines, width, height }
}

function ring(names: string[]): Node[] {
  const widest = Math.max(...names.map(widthOf))
  const [rx, ry] = [Math.max(190, widest), names.length < 3 ? 0 : 40 + names.length * 14]
  return names.map((name, i) => {
    const angle = (i / names.length) * 2 * Math.PI - Math.PI
    const x = EDGE + widest / 2 + rx + Math.cos(angle) * rx
    return { name, x, y: EDGE + 40 + ry + Math.sin(angle) * ry, w: widthOf(name) }
  })
}

/** A column per step of waiting: an agent that waits for nobody stands at the right. */
function columns(names: string[], edges: Edge[]): Node[] {
  const steps = new Map<string, number>()
  const stepOf = (name: string, path: Set<string>): number => {
    const known = steps.get(name)
    if (known !== undefined || path.has(name)) return known ?? 0
    path.add(name)
    const next = edges.filter(({ from }) => from === name).map(({ to }) => stepOf(to, path) + 1)
    path.delete(name)
    steps.set(name, Math.max(0, ...next))
    return steps.get(name)!
  }
  for (const name of names) stepOf(name, new Set())
  const deepest = Math.max(...steps.values())
  const byStep = Array.from({ length: deepest + 1 }, (_, step) =>
    names.filter((name) => steps.get(name) === deepest - step),
  )
  let left = EDGE
  return byStep.flatMap((column) => {
    const widest = Math.max(...column.map(widthOf))
    const x = left + widest / 2
    left += widest + COLUMN_GAP
    return column.map((name, i) => ({ name, x, y: EDGE + 16 + i * ROW, w: widthOf(name) }))
  })
}

function lineOf({ from, to, lock }: Edge, a: Node, b: Node, isRing: boolean): Line {
  const key = `${from}\n${to}\n${lock}`
  if (isRing) return arc(key, lock, a, b)
  const [x1, x2] = [a.x + a.w / 2, b.x - b.w / 2 - 2]
  const bend = Math.max(40, (x2 - x1) / 2)
  const path = `M${x1} ${a.y}C${x1 + bend} ${a.y} ${x2 - bend} ${b.y} ${x2} ${b.y}`
  return { key, path, x: (x1 + x2) / 2, y: (a.y + b.y) / 2 - 7, text: lock }
}

/** Bent to one side, so that two agents who wait for each other have two arrows. */
function arc(key: string, text: string, a: Node, b: Node): Line {
  const [dx, dy] = [b.x - a.x, b.y - a.y]
  const length = Math.hypot(dx, dy) || 1
  const [nx, ny] = [-dy / length, dx / length]
  const side = 44
  const [mx, my] = [(a.x + b.x) / 2 + nx * side, (a.y + b.y) / 2 + ny * side]
  const begin = edgeOf(a, mx, my)
  const end = edgeOf(b, mx, my)
  const path = `M${begin.x} ${begin.y}Q${mx} ${my} ${end.x} ${end.y}`
  return { key, path, x: (a.x + b.x) / 2 + nx * 34, y: (a.y + b.y) / 2 + ny * 34 + 4, text }
}

/** Where the way from the middle of a box to a point leaves the box. */
function edgeOf({ x, y, w }: Node, toX: number, toY: number): { x: number; y: number } {
  const [dx, dy] = [toX - x, toY - y]
  const scale = Math.min((w / 2 + 3) / Math.abs(dx || 1e-6), 19 / Math.abs(dy || 1e-6))
  return { x: x + dx * scale, y: y + dy * scale }
}
