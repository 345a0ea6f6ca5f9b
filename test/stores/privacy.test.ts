import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { expectRefusal, temporaryFolder } from '../support/helpers.ts'

const KINDS = ['sqlite', 'file'] as const

/** Writes to the store that a login with this environment would use. */
async function write(kind: (typeof KINDS)[number], folder: string): Promise<void> {
  const env = { LEASEHOLD_DIR: folder, LEASEHOLD_STORE: kind === 'file' ? 'file:' : '' }
  const store = openStore(placeOf(env, folder))
  try {
    await store.write((view) => {
      view.record('store.pruned', { agent: 'a' }, {})
    })
  } finally {
    await store.close()
  }
}

const modeOf = (path: string) => statSync(path).mode & 0o777

describe.each(KINDS)('the folder of a %s store', (kind) => {
  it('is made for this login only when it is missing', async () => {
    const folder = join(temporaryFolder(), 'a', 'b')
    await write(kind, folder)
    expect(modeOf(folder)).toBe(0o700)
  })

  it('is made private when it was empty, or held only a configuration', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'config.json'), '{}')
    chmodSync(folder, 0o755)
    await write(kind, folder)
    expect(modeOf(folder)).toBe(0o700)
  })

  it('is refused when it holds other things that others can read', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'README'), 'not ours')
    chmodSync(folder, 0o755)
    await expectRefusal(write(kind, folder), 'forbidden')
    expect(modeOf(folder)).toBe(0o755)
  })

  it('is refused when a store in it was opened to others', async () => {
    const folder = temporaryFolder()
    await write(kind, folder)
    chmodSync(folder, 0o750)
    await expectRefusal(write(kind, folder), 'forbidden')
  })

  it('is refused when git tracks it', async () => {
    const repository = temporaryFolder()
    const folder = join(repository, '.leasehold')
    const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, stdio: 'pipe' })
    mkdirSync(folder)
    writeFileSync(join(folder, 'config.json'), '{}')
    git('init', '-q')
    git('add', '-A')
    await expectRefusal(write(kind, folder), 'forbidden')
  })
})

it('refuses a database file that other logins can read', async () => {
  const folder = temporaryFolder()
  await write('sqlite', folder)
  chmodSync(join(folder, 'leasehold.db'), 0o644)
  await expectRefusal(write('sqlite', folder), 'forbidden')
})
