import { describe, expect, test } from 'vitest'
import type { Client, EventStream } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn, killAndRestart } from '../support/daemons.ts'
import { expectRefusal } from '../support/helpers.ts'
import { type Sandbox, sandbox } from '../support/processes.ts'

/** The tasks that a stream says were created, until all of `count` were. */
async function createdIn(stream: EventStream, count: number): Promise<[string[], number[]]> {
  const tasks: string[] = []
  const positions: number[] = []
  for await (const { event } of stream) {
    if (!event) throw new Error('reset')
    positions.push(event.position)
    if (event.type === 'task.created') tasks.push(event.task!)
    if (tasks.length === count) break
  }
  return [tasks, positions]
}

const WAYS: Record<string, (place: Sandbox) => Promise<Client>> = {
  embedded: (place) => clientOf({ embedded: true, dir: place.state, agent: 'ada' }),
  'through a server': async (place) => {
    await daemonOn(place)
    return clientOf({ dir: place.state, agent: 'ada' })
  },
}

describe.for(Object.keys(WAYS))('events %s', (way) => {
  test('come in order without a gap, also those of other processes', async () => {
    const place = sandbox()
    const client = await WAYS[way]!(place)
    const stream = client.events()
    const begun = await stream.opened
    await client.task.create({ id: 'A', title: 'Mine' })
    const other = await clientOf({ embedded: true, dir: place.state, agent: 'bob' })
    await other.task.create({ id: 'B', title: 'Theirs' })
    await client.task.create({ id: 'C', title: 'Mine' })
    const [tasks, positions] = await createdIn(stream, 3)
    expect(tasks).toEqual(['A', 'B', 'C'])
    expect(positions).toEqual(positions.map((_, i) => positions[0]! + i))
    const [again] = await createdIn(client.events({ after: begun }), 3)
    expect(again).toEqual(['A', 'B', 'C'])
  })

  test('begin with a reset behind a place that nobody knows', async () => {
    const client = await WAYS[way]!(sandbox())
    await client.task.create({ title: 'x' })
    const stream = client.events({ after: '9-1000000' })
    for await (const { reset, event } of stream) {
      expect({ reset, event }).toEqual({ reset: true, event: null })
      break
    }
  })

  test('end when the signal is aborted', async () => {
    const client = await WAYS[way]!(sandbox())
    await client.task.create({ title: 'x' })
    const ending = new AbortController()
    const stream = client.events({ signal: ending.signal })
    await stream.opened
    ending.abort()
    for await (const happening of stream) expect(happening).toBeUndefined()
  })
})

test('events go on over kill -9 and restart of the server, without gap or double', async () => {
  const place = sandbox()
  let daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'ada')
  const stream = client.events()
  await stream.opened
  // Killed before the first event: only the place where it began tells it where to go on.
  daemon = await killAndRestart(place, daemon)
  const seen = createdIn(stream, 60)
  for (let round = 0; round < 3; round += 1) {
    const titles = Array.from({ length: 20 }, (_, i) => `${round}-${i}`)
    await Promise.all(titles.map((id) => client.task.create({ id, title: id })))
    daemon = await killAndRestart(place, daemon)
  }
  const [tasks, positions] = await seen
  expect(new Set(tasks).size).toBe(60)
  expect(positions).toEqual(positions.map((_, i) => positions[0]! + i))
})

test('a stream that may not be read is refused, not tried for ever', async () => {
  const place = sandbox()
  const { url } = await daemonOn(place)
  const stranger = await clientOf({ url, token: 'nobody' })
  await expectRefusal(stranger.events().opened, 'unauthorized')
})
