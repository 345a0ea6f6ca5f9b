import type { Player } from './parity_player.ts'

/** What no script brings about: there is a database. */
export const SEARCH_UNREACHED = {
  ...Object.fromEntries(
    ['duplicate.list', 'duplicate.resolve'].map((name) => {
      return [name, { unavailable: 'only on a file store: e2e/memory shows it' }]
    }),
  ),
}

/** Notes by words, and pairs that a server with a model would have found. */
export async function searching(p: Player): Promise<void> {
  const web = { scope: 'project:shop' }
  const note = { ...web, key: 'seek', content: 'a marmalade "jar" on the shelf', tags: ['x'] }
  await p.ask('memory.put', 'ada', note)
  await p.ask('memory.search', 'bob', { query: 'marmalade' })
  await p.ask('memory.search', 'bob', { query: 'marmalade', mode: 'text', ...web, tags: ['x'] })
  await p.ask('memory.search', 'bob', { query: 'marmalade', author: 'cy' })
  await p.ask('memory.search', 'bob', { query: 'marmalade', min_confidence: 0.5 })
  await p.ask('memory.search', 'bob', { query: 'marmalade', newer_than_seconds: 3600, limit: 1 })
  await p.ask('memory.search', 'bob', { query: 'marmalade', mode: 'meaning' })
  await p.ask('memory.search', 'bob', { query: '" OR marmalade*', mode: 'text' })
  await p.ask('memory.context', 'bob', { query: 'marmalade', token_budget: 500 })
  await p.ask('task.create', 'ada', { id: 'S-1', title: 'Find the marmalade', project: 'shop' })
  await p.ask('memory.context', 'bob', { task_id: 'S-1' })
  await p.ask('memory.context', 'bob', { task_id: 'none' })
  await p.ask('memory.context', 'bob', {})
  await p.ask('memory.status', 'bob', {})
  await p.ask('memory.retry', 'ada', {})
  await pairs(p)
}

async function pairs(p: Player): Promise<void> {
  for (const key of ['pair-a', 'pair-b', 'pair-c', 'pair-d']) {
    await p.ask('memory.put', 'ada', { key, content: `said in ${key}` })
  }
  await p.found('pair-1', 'pair-a', 'pair-b')
  await p.found('pair-2', 'pair-c', 'pair-d')
  await p.ask('duplicate.list', 'bob', {})
  await p.ask('duplicate.list', 'bob', { scope: 'project:shop' })
  await p.ask('duplicate.list', 'bob', { after: 'nonsense' })
  await p.ask('duplicate.resolve', 'bob', { id: 'none', action: 'keep_both' })
  await p.ask('duplicate.resolve', 'bob', { id: 'pair-1', action: 'merge' })
  const long = 'x'.repeat(1024 * 1024 + 1)
  await p.ask('duplicate.resolve', 'bob', { id: 'pair-1', action: 'merge', content: long })
  const both = { id: 'pair-1', action: 'merge', content: 'said in both', request_id: 'd1' }
  await p.ask('duplicate.resolve', 'bob', both)
  await p.ask('duplicate.resolve', 'bob', both)
  await p.ask('duplicate.resolve', 'bob', { id: 'pair-1', action: 'keep_both' })
  await p.ask('duplicate.resolve', 'bob', { id: 'pair-2', action: 'delete_a' })
  await p.ask('memory.get', 'bob', { key: 'pair-a' })
  await p.ask('memory.get', 'bob', { key: 'pair-b' })
  await p.ask('memory.get', 'bob', { key: 'pair-c' })
  await p.ask('duplicate.list', 'bob', { status: 'resolved' })
}
