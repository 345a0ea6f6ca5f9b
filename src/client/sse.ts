import type { ShownEvent, Told } from './transport.ts'

/** Reads an event stream: blocks of `field: value` lines, each ended by an empty line. */
export async function* toldBy(parts: AsyncIterable<string>): AsyncGenerator<Told> {
  let rest = ''
  for await (const part of parts) {
    const blocks = (rest + part).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const told = toldIn(block)
      if (told) yield told
    }
  }
  throw new Error('the stream has ended')
}

/** Without an id it only keeps the connection open; without data it says where we begin. */
function toldIn(block: string): Told | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2))
  }
  const id = fields.get('id')
  const data = fields.get('data')
  if (id === undefined) return undefined
  if (data === undefined) return { id, what: 'begin', event: null }
  if (fields.get('event') === 'reset') return { id, what: 'reset', event: null }
  return { id, what: 'event', event: JSON.parse(data) as ShownEvent }
}
