import { join } from 'node:path'
import type { Client } from './client.ts'
import { filesNamed, TEXT } from './scene.ts'
import { type Bench, type Cells, enter, freed, REASON, stepsOf } from './trials.ts'
import { held, until, World } from './world.ts'

const FILES = ['edit', 'tool', 'shell'] as const

/**
 * Two terminals on one server of the client, which runs both conversations in one process: what one
 * has by an edit, a tool or its shell, the other may not edit. The first terminal is closed while
 * its turn goes on in the server; the turn's end frees what it edited.
 */
export async function tryShared(bench: Bench, client: Client, cells: Cells): Promise<void> {
  cells.shared = 'has none'
  const { shared } = client
  if (!shared) return
  const root = join(bench.folder, `shared-${client.kind}`)
  const world = await World.make(root, bench.bin, [client], filesNamed(...FILES, 'own'))
  try {
    const server = world.start(client, shared.serve)
    const address = await until('its server listens', () => shared.addressIn(server.out))
    const words = client.words(world)
    const first = held()
    world.script('first', [
      ...stepsOf([
        words.mcp('reserve_paths', { paths: ['tool.txt'] }),
        words.shell('leasehold reserve add shell.txt'),
        words.edit('edit.txt', 'two', 'A'),
      ]),
      first.step,
    ])
    const terminal = world.start(client, shared.join(address, '[play first] go'), true)
    await enter(world, terminal, 'first')
    await terminal.reaches(first.gate)
    const second = held()
    world.script('second', [
      ...stepsOf(FILES.map((name) => words.edit(`${name}.txt`, 'three', 'B'))),
      ...stepsOf([words.shell('leasehold reserve add own.txt'), words.edit('own.txt', 'two', 'B')]),
      second.step,
    ])
    const other = world.start(client, shared.join(address, '[play second] go'), true)
    await enter(world, other, 'second')
    await other.reaches(second.gate)
    const isRefused = FILES.every((_, at) => REASON.test(world.model.result('second', at) ?? ''))
    const isOwn = world.read('own.txt') !== TEXT
    terminal.kill()
    first.gate.open()
    const end = freed(await world.secondsToFree('edit.txt'))
    cells.shared = isRefused && isOwn ? `kept apart, ${end}` : 'not kept apart'
  } finally {
    await world.end()
  }
}
