import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { clientOf, daemonOn } from '../support/daemons.ts'
import { overStdio } from '../doors/mcp_agent.ts'
import { expectRefusal } from '../support/helpers.ts'
import { Endpoint } from '../memory/endpoint.ts'
import { sandbox, type Sandbox, until } from '../support/processes.ts'

test('a command finds notes by words alone, and by meaning once they are embedded', async () => {
  const place = sandbox()
  const endpoint = await Endpoint.start()
  await place.ok(['memory', 'put', 'cache', 'the cache of the shop is redis'])
  await place.ok([
    'memory',
    'put',
    'port',
    'the database listens on 5433',
    '--scope',
    'project:web',
  ])
  const search = (...more: string[]) => place.ok(['memory', 'search', 'redis shop', ...more])
  expect(await search()).toMatchObject({ modes: ['text'], items: [{ key: 'cache' }] })
  await place.refused(['memory', 'search', 'x', '--mode', 'meaning'], 'unavailable', 75)

  place.env['LEASEHOLD_EMBEDDINGS'] = undefined
  place.env['WORDS_KEY'] = 'open-sesame'
  const config = endpoint.config({ api_key_env: 'WORDS_KEY' })
  writeFileSync(`${place.state}/config.json`, JSON.stringify(config), { mode: 0o600 })
  const { running } = await daemonOn(place)
  await until('all is embedded', async () => {
    const { embedded, waiting } = await place.ok(['memory', 'status'])
    return embedded === 2 && waiting === 0
  })
  expect(endpoint.headers.authorization).toBe('Bearer open-sesame')
  expect(await search()).toMatchObject({ modes: ['text', 'meaning'] })
  const doctor = await place.cli(['doctor', '--json'])
  const { findings } = doctor.json as { findings: { what: string; says: string }[] }
  expect(findings.find(({ what }) => what === 'memory')!.says).toMatch(/2 notes, 2 embedded/)
  running.kill('SIGTERM')
  await running.ended

  // The server is gone, its vectors are not.
  const found = await search('--mode', 'meaning', '--limit', '1')
  expect(found).toMatchObject({ modes: ['meaning'], items: [{ key: 'cache' }] })
  const shown = await place.cli(['memory', 'search', 'redis shop'])
  expect(shown.out).toMatch(/cache {2}global {2}by .* ago\n {2}the cache of the shop is redis/)
  expect(shown.out).toMatch(/looked by text and meaning/)
  await expectWays(place)
  const context = await place.cli(['memory', 'context', 'which port'])
  expect(context.out).toMatch(/about \d+ tokens/)
})

/** Who has no server is told in the answer which ways it was found by. */
async function expectWays(place: Sandbox): Promise<void> {
  const query = { query: 'redis shop' }
  const piped = await overStdio(place, { env: place.env })
  expect(await piped.ok('memory_search', query)).toMatchObject({ modes: ['text', 'meaning'] })
  expect(await piped.text('memory_context', query)).toMatch(/\nlooked by text and meaning$/)

  const client = await clientOf({ embedded: true, dir: place.state, agent: 'ada' })
  const why = expect.stringMatching(/running server \(leasehold up\)/) as string
  const byWords = { modes: ['text'], why, items: [{ key: 'cache' }] }
  expect(await client.memory.search(query)).toMatchObject(byWords)
  expect(await client.memory.context(query)).toMatchObject(byWords)
  await expectRefusal(client.memory.search({ ...query, mode: 'meaning' }), 'unavailable')

  const off = await overStdio(place, { env: { ...place.env, LEASEHOLD_EMBEDDINGS: 'off' } })
  expect(await off.ok('memory_search', query)).toMatchObject({ modes: ['text'] })
  expect(await off.text('memory_search', query)).toMatch(/\nlooked by text; embeddings are off$/)
}

test('the model in the package embeds without a network', async () => {
  const place = sandbox()
  place.env['LEASEHOLD_EMBEDDINGS'] = undefined
  await place.ok(['memory', 'put', 'money', 'Money is stored as integer cents'])
  await place.ok(['memory', 'put', 'vpn', 'The admin panel is behind the VPN'])
  await daemonOn(place)
  const search = () => place.ok(['memory', 'search', 'representing prices', '--mode', 'meaning'])
  await until('both are embedded', async () => (await place.ok(['memory', 'status'])).waiting === 0)
  const { items } = await search()
  expect(items[0].key).toBe('money')
})
