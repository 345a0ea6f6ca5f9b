import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { page, pageText, readResults } from '../clients/page.ts'
import { CLIENTS } from '../clients/programs.ts'
import { outcomeOf, PLACES, type Recording, RECORDINGS } from '../clients/recordings.ts'
import { HALF_DONE, HELD, SCENE } from '../clients/scene.ts'
import { AgentProcess, repository } from './agents.ts'

/** What real clients sent to our hooks when `npm run clients` drove them, by client and version. */
const folders = readdirSync(RECORDINGS, { withFileTypes: true })
  .filter((each) => each.isDirectory())
  .map(({ name }) => name)

describe('what a real client sent is answered as it was then', () => {
  test.for(folders)('%s', async (folder) => {
    const { place, repo, git } = repository()
    for (const [path, text] of Object.entries(SCENE)) writeFileSync(join(repo, path), text)
    git('add', '.')
    git('commit', '-qm', 'Scene')
    for (const [path, text] of Object.entries(HALF_DONE)) writeFileSync(join(repo, path), text)
    const holder = new AgentProcess(place, repo)
    await holder.leasehold(`reserve add ${HELD.join(' ')} --agent holder`)
    const client = new AgentProcess(place, repo)
    const found: Record<string, string> = {}
    const expected: Record<string, string> = {}
    for (const name of readdirSync(join(RECORDINGS, folder))) {
      const text = readFileSync(join(RECORDINGS, folder, name), 'utf8')
      const here = text.replaceAll(PLACES.repo, repo).replaceAll(PLACES.home, place.home)
      const { client: kind, event, input, outcome } = JSON.parse(here) as Recording
      const { code, out } = await client.hook(kind, event, input)
      found[name] = outcomeOf(String(code), out)
      expected[name] = outcome
    }
    expect(found).toEqual(expected)
    expect(Object.values(found)).toContain('refused')
  })
})

test('the recordings are of the versions that npm run clients drives', () => {
  expect(folders).toEqual(CLIENTS.map(({ kind, version }) => `${kind}-${version}`).toSorted())
})

test('docs/clients.md shows what npm run clients has seen', () => {
  expect(page(pageText(), readResults())).toBe(pageText())
})
