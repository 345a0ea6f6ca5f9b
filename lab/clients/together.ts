import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Client } from './client.ts'
import { filesNamed } from './scene.ts'
import { type Bench, REASON, stepsOf } from './trials.ts'
import { held, World } from './world.ts'

/** One agent of each client edits a file and works on; one of every client wants to edit it too. */
export async function tryPairs(
  { folder, bin }: Bench,
  first: Client,
  clients: Client[],
): Promise<Record<string, string>> {
  const root = join(folder, `pairs-${first.kind}`)
  const all = [...new Set([first, ...clients])]
  const world = await World.make(root, bin, all, filesNamed('a'))
  try {
    const words = first.words(world)
    const { step, gate } = held()
    const edit = stepsOf([words.read('a.txt'), words.edit('a.txt', 'two', 'A')])
    const running = world.start(first, first.once(world.script('first', [...edit, step])))
    await running.reaches(gate)
    const theirs = world.read('a.txt')
    if (theirs !== 'one\nA\nthree\n') throw new Error(`no first edit: ${running.out}`)
    const found: Record<string, string> = {}
    for (const second of clients) {
      const theirWords = second.words(world)
      const name = `second_${second.kind}`
      const calls = [
        theirWords.read('a.txt'),
        theirWords.edit('a.txt', 'three', 'B'),
        theirWords.write('a.txt', 'B\n'),
      ]
      await world.play(second, name, [...stepsOf(calls), { text: 'Done.' }])
      const isRead = [1, 2].every((at) => REASON.test(world.model.result(name, at) ?? ''))
      const isSame = world.read('a.txt') === theirs
      if (running.isOver) throw new Error(`the first one ended before ${second.kind} was done`)
      found[second.kind] = isSame ? (isRead ? 'refused' : 'not done, no reason') : 'not seen'
      world.write('a.txt', theirs)
    }
    return found
  } finally {
    await world.end()
  }
}

/** Rounds in which A writes a file from memory that B has edited since. Returns lost edits of B. */
export async function tryResume(
  { folder, bin }: Bench,
  client: Client,
  other: Client,
  rounds: number,
): Promise<number> {
  const root = join(folder, `resume-${client.kind}-${other.kind}`)
  const world = await World.make(root, bin, [...new Set([client, other])], filesNamed('a'))
  const { begin, idIn, resume } = client.named!
  let id: string = randomUUID()
  let lost = 0
  try {
    const words = client.words(world)
    const others = other.words(world)
    for (let round = 0; round < rounds; round += 1) {
      const goOn = (prompt: string) => (round === 0 ? begin : resume)(prompt, id)
      const text = (more: string) => `of A, round ${round}\n${more}`
      const [mine, both] = [text('last\n'), text(`of B, round ${round}\n`)]
      const calls = [
        words.read('a.txt'),
        words.write('a.txt', 'A\n'),
        words.read('a.txt'),
        words.write('a.txt', mine),
      ]
      const printed = await world.play(client, `write${round}`, stepsOf(calls), goOn)
      if (round === 0) id = idIn(printed) ?? id
      await world.play(
        other,
        `other${round}`,
        stepsOf([others.read('a.txt'), others.edit('a.txt', 'last', `of B, round ${round}`)]),
      )
      if (world.read('a.txt') !== both)
        throw new Error(`round ${round}: B did not edit: ${world.read('a.txt')}`)
      const again = stepsOf([words.write('a.txt', `${mine}more\n`)])
      await world.play(client, `again${round}`, again, (prompt) => resume(prompt, id))
      if (world.model.result(`again${round}`, 0) === undefined)
        throw new Error(`round ${round}: A was not resumed`)
      if (world.read('a.txt') !== both) lost += 1
    }
    return lost
  } finally {
    await world.end()
  }
}
