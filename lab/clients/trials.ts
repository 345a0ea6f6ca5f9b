import { join } from 'node:path'
import type { Client } from './client.ts'
import type { Step } from './model.ts'
import { keepRecordings, recordingBin } from './recordings.ts'
import { filesNamed, HALF_DONE, HELD, SCENE, TEXT } from './scene.ts'
import { held, type Running, until, World } from './world.ts'

/** What was seen of a client, by the column of the table. */
export type Cells = Partial<Record<Column, string>>

export const COLUMNS = {
  edit: 'edit',
  create: 'create',
  delete: 'delete',
  move: 'move',
  shell: 'shell',
  commit: 'commit',
  subagent: 'subagent',
  script: 'script that writes',
  between: 'change between two calls',
  asked: 'word of another agent',
  turn: "turn's end",
  esc: 'Esc',
  error: 'API error',
  kill: 'kill -9',
  terminal: 'closed terminal',
  brief: 'brief',
  mcp: 'MCP tool',
  own_shell: 'own, by shell',
  own_mcp: 'own, by MCP',
  shared: 'two on one server',
  plugin: 'as a plugin',
  queue: 'queue to landed',
  ordinary: 'ordinary commands, as before init',
  cost: 'tokens of ours in twelve calls',
} as const
export type Column = keyof typeof COLUMNS

export const REASON = /Leasehold: /
/** What the command and the tool answer. */
const RESERVED = /reserved by-|"path":"by-/i

/** Where trials are made, and with what. */
export interface Bench {
  /** A folder that is thrown away afterwards. */
  folder: string
  bin: string
  /** The folder of our package, with the plugins in it. */
  plugins: string
  /** Whether what clients tell hooks becomes fixtures of tests. */
  keepsRecordings: boolean
}

/** Each call as a step of its own. */
export const stepsOf = (calls: (Step['calls'] & {})[number][]): Step[] =>
  calls.map((call) => ({ calls: [call] }))

/** Another agent has files, and the client's model asks for each way to write them. */
export async function tryWrites(bench: Bench, client: Client, cells: Cells): Promise<void> {
  const recorded = join(bench.folder, `recorded-${client.kind}`)
  const bin = recordingBin(bench.bin, recorded, [client.kind])
  const world = await World.make(join(bench.folder, `writes-${client.kind}`), bin, [client], SCENE)
  try {
    // Before it is reserved: a write of nobody known, afterwards, would be noticed and told.
    for (const [path, text] of Object.entries(HALF_DONE)) world.write(path, text)
    world.run('leasehold', 'reserve', 'add', ...HELD, '--agent', 'holder')
    const words = client.words(world)
    const remove = words.remove ?? ((path) => words.shell(`rm ${path}`))
    const move = words.move ?? ((from, to) => words.shell(`mv ${from} ${to}`))
    const before = world.run('git', 'rev-parse', 'HEAD')
    const subagent = words.subagent?.('sub') ?? []
    world.script('sub', stepsOf([words.read('sub.txt'), words.edit('sub.txt', 'two', 'B')]))
    const out = await world.play(client, 'writes', [
      ...stepsOf([
        words.read('edit.txt'),
        words.edit('edit.txt', 'two', 'B'),
        words.write('create.txt', 'B\n'),
        remove('delete.txt'),
        move('move.txt', 'moved.txt'),
        words.shell('echo B > shell.txt'),
        words.shell('git commit -qam all'),
        words.read('free.txt'),
        words.edit('free.txt', 'two', 'B'),
      ]),
      ...subagent,
      { text: 'Done.' },
    ])
    if (world.read('free.txt') !== 'one\nB\nthree\n') {
      throw new Error(`a free file was not edited: ${world.model.result('writes', 8)}\n${out}`)
    }
    if (bench.keepsRecordings) keepRecordings(recorded, client, world)
    const refusal = (isAsItWas: boolean, script: string, step: number) => {
      const isRead = REASON.test(world.model.result(script, step) ?? '')
      if (isAsItWas && isRead) return 'refused'
      const isTold = world.model.asked.some(
        (each) => each.script === script && REASON.test(each.body),
      )
      return isAsItWas ? 'not done' : isTold ? 'noticed' : 'not seen'
    }
    const isSame = (name: string) => world.read(`${name}.txt`) === TEXT
    Object.assign(cells, {
      edit: refusal(isSame('edit'), 'writes', 1),
      create: refusal(world.read('create.txt') === undefined, 'writes', 2),
      delete: refusal(isSame('delete'), 'writes', 3),
      move: refusal(isSame('move'), 'writes', 4),
      shell: refusal(isSame('shell'), 'writes', 5),
      commit: refusal(world.run('git', 'rev-parse', 'HEAD') === before, 'writes', 6),
      subagent: words.subagent ? refusal(isSame('sub'), 'sub', 1) : 'has none here',
      brief: isBriefed(world, client) ? 'read' : 'not read',
    })
  } finally {
    await world.end()
  }
}

const isBriefed = ({ model }: World, { kind }: Client) =>
  model.asked.some(({ step, body }) => step === 0 && body.includes(`You are ${kind}:`))

/** One conversation is one agent: it may edit what it reserved itself, by shell or by a tool. */
export async function tryOwn({ folder, bin }: Bench, client: Client, cells: Cells): Promise<void> {
  const files = filesNamed('by-shell', 'by-mcp')
  const world = await World.make(join(folder, `own-${client.kind}`), bin, [client], files)
  try {
    world.run('leasehold', 'task', 'add', 'Mend the roof')
    const words = client.words(world)
    const steps = stepsOf([
      words.mcp('claim_task', {}),
      words.shell('leasehold reserve add by-shell.txt'),
      words.read('by-shell.txt'),
      words.edit('by-shell.txt', 'two', 'B'),
      words.mcp('reserve_paths', { paths: ['by-mcp.txt'] }),
      words.read('by-mcp.txt'),
      words.edit('by-mcp.txt', 'two', 'B'),
    ])
    await world.play(client, 'own', [...steps, { text: 'Done.' }], client.usual)
    const result = (step: number) => world.model.result('own', step) ?? ''
    const own = (name: string, reserved: number) => {
      if (!RESERVED.test(result(reserved))) return 'not permitted'
      if (world.read(`${name}.txt`) !== TEXT) return 'its own'
      return REASON.test(result(reserved + 2)) ? 'locked out' : 'not done'
    }
    Object.assign(cells, {
      mcp: result(0).includes('Mend the roof') ? 'works' : 'not permitted',
      own_shell: own('by-shell', 1),
      own_mcp: own('by-mcp', 4),
    })
  } finally {
    await world.end()
  }
}

export const freed = (seconds: number | undefined) =>
  seconds === undefined ? 'not freed in 20 s' : `freed in ${Math.max(seconds, 0.1).toFixed(1)} s`

/** The client has our hooks, tools and skill by a plugin, and `init` wrote none. */
export async function tryPlugin(bench: Bench, client: Client, cells: Cells): Promise<void> {
  cells.plugin = 'has none'
  if (!client.plug) return
  const root = join(bench.folder, `plugin-${client.kind}`)
  const files = filesNamed('a')
  const world = await World.make(root, bench.bin, [client], files, { plugins: bench.plugins })
  try {
    world.run('leasehold', 'reserve', 'add', 'a.txt', '--agent', 'holder')
    const words = client.words(world)
    const calls = [
      words.read('a.txt'),
      words.edit('a.txt', 'two', 'B'),
      words.mcp('reserve_paths', { paths: ['b.txt'] }),
    ]
    const out = await world.play(client, 'plugin', [...stepsOf(calls), { text: 'Done.' }])
    const isRefused = REASON.test(world.model.result('plugin', 1) ?? '')
    if (!isRefused || world.read('a.txt') !== TEXT) throw new Error(`not refused: ${out}`)
    // Some name the tools of a plugin's server in another way.
    const hasTools =
      /b\.txt/.test(world.model.result('plugin', 2) ?? '') ||
      world.model.asked.some(({ body }) => body.includes('leasehold__reserve_paths'))
    cells.plugin = `refused${hasTools ? '' : ', no MCP tools'}`
  } finally {
    await world.end()
  }
}

/** All processes of a client die at once while it has a file. */
export async function tryKill({ folder, bin }: Bench, client: Client, cells: Cells): Promise<void> {
  const root = join(folder, `kill-${client.kind}`)
  const world = await World.make(root, bin, [client], filesNamed('a'))
  try {
    const words = client.words(world)
    const { step, gate } = held()
    const edit = stepsOf([words.read('a.txt'), words.edit('a.txt', 'two', 'A')])
    const running = world.start(client, client.once(world.script('kill', [...edit, step])))
    await running.reaches(gate)
    if (!world.isHeld('a.txt')) throw new Error(`its edit reserved nothing: ${running.out}`)
    running.kill()
    cells.kill = freed(await world.secondsToFree('a.txt'))
  } finally {
    await world.end()
  }
}

/** Presses Enter until the model is asked: a screen may not be ready to read at once. */
export async function enter({ model }: World, running: Running, script: string): Promise<void> {
  const isAsked = () => model.asked.some((each) => each.script === script)
  for (let tries = 0; tries < 20 && !isAsked(); tries += 1) {
    await until('the prompt is sent', isAsked, 1500).catch(() => running.type('\r'))
  }
}

/** Apart from each other: two at once are another key to a terminal's programs. */
async function escape(running: Running, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    running.type('\u001B')
    await until('', () => false, 100).catch(() => undefined)
  }
}

/** On a terminal: a turn ends, Esc is pressed, the model's server fails, the window is closed. */
export async function tryEnds({ folder, bin }: Bench, client: Client, cells: Cells): Promise<void> {
  const ways = ['turn', 'esc', 'error', 'terminal'] as const
  const root = join(folder, `ends-${client.kind}`)
  const world = await World.make(root, bin, [client], filesNamed(...ways))
  try {
    const words = client.words(world)
    const gates = ways.map((way) => {
      const { step, gate } = held(way === 'error' ? { fails: 400 } : { text: 'Done.' })
      const edit = stepsOf([words.read(`${way}.txt`), words.edit(`${way}.txt`, 'two', 'A')])
      world.script(way, [...edit, step])
      return { way, gate }
    })
    const running = world.start(client, client.typed('[play turn] go'), true)
    for (const { way, gate } of gates) {
      if (way !== 'turn') running.type(`[play ${way}] go`)
      await enter(world, running, way)
      await running.reaches(gate)
      if (!world.isHeld(`${way}.txt`)) throw new Error(`the edit for ${way} reserved nothing`)
      if (way === 'esc') await escape(running, client.escapes)
      else if (way === 'terminal') running.kill()
      else gate.open()
      cells[way] = freed(await world.secondsToFree(`${way}.txt`))
      gate.open()
    }
  } finally {
    await world.end()
  }
}
