import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandbox, type Sandbox } from '../support/processes.ts'

/** Where a call from `cwd` finds the state, with nothing but the folders to go by. */
async function placeSeenFrom(place: Sandbox, cwd: string, env: Record<string, string> = {}) {
  const bare = { LEASEHOLD_DIR: undefined, ...env }
  const { json } = await place.cli(['--json', 'doctor'], { cwd, env: bare })
  const findings = json.findings as { what: string; says: string }[]
  const { says } = findings.find(({ what }) => what === 'folder')!
  return join(says.replace(/ (?:\(|can be read).*$/, ''), 'leasehold.db')
}

function folder(place: Sandbox, name: string): string {
  mkdirSync(place.path(name), { recursive: true })
  return realpathSync(place.path(name))
}

describe('where the state lives', () => {
  test('LEASEHOLD_DIR, else the nearest .leasehold upward, else the one at home', async () => {
    const place = sandbox()
    const deep = folder(place, 'project/src/deep')
    const home = join(place.home, '.leasehold', 'leasehold.db')
    expect(await placeSeenFrom(place, deep)).toBe(home)
    const outer = join(folder(place, 'project/.leasehold'), 'leasehold.db')
    expect(await placeSeenFrom(place, deep)).toBe(outer)
    const inner = join(folder(place, 'project/src/.leasehold'), 'leasehold.db')
    expect(await placeSeenFrom(place, deep)).toBe(inner)
    const said = { LEASEHOLD_DIR: '../here' }
    const relative = join(place.folder, 'project', 'src', 'here', 'leasehold.db')
    expect(await placeSeenFrom(place, deep, said)).toBe(realpathed(relative))
    expect(existsSync(home)).toBe(false)

    function realpathed(path: string): string {
      return path.replace(place.folder, realpathSync(place.folder))
    }
  })

  test('all worktrees of a repository share the state of the main checkout', async () => {
    const place = sandbox()
    const main = folder(place, 'main')
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        cwd: main,
        stdio: 'ignore',
        env: { PATH: process.env['PATH'], HOME: place.home },
      })
    git('init')
    git('commit', '--allow-empty', '-m', 'begin')
    git('worktree', 'add', join(place.folder, 'tree'), '-b', 'other')
    mkdirSync(join(main, '.leasehold'))
    const store = join(main, '.leasehold', 'leasehold.db')
    const inside = folder(place, 'tree/src')
    expect(await placeSeenFrom(place, main)).toBe(store)
    expect(await placeSeenFrom(place, inside)).toBe(store)

    const env = { LEASEHOLD_DIR: undefined }
    await place.ok(['lock', 'acquire', 'git:web', '--agent', 'a'], { cwd: inside, env })
    const args = ['lock', 'acquire', 'git:web', '--agent', 'b']
    await place.refused(args, 'held', 5, { cwd: main, env })
    // A folder of the worktree's own does not take it away from the others.
    mkdirSync(join(place.folder, 'tree', '.leasehold'))
    expect(await placeSeenFrom(place, inside)).toBe(store)
  })

  test('a .git file that names something else is not followed', async () => {
    const place = sandbox()
    const tree = folder(place, 'tree')
    writeFileSync(join(tree, '.git'), 'gitdir: ../elsewhere\n')
    const own = join(folder(place, 'tree/.leasehold'), 'leasehold.db')
    expect(await placeSeenFrom(place, tree)).toBe(own)
  })

  test('LEASEHOLD_STORE names a store of either kind, and nonsense is refused', async () => {
    const place = sandbox()
    const store = (said: string) => ({ env: { LEASEHOLD_STORE: said } })
    await place.ok(['lock', 'acquire', 'x'], store('file:files'))
    expect(existsSync(place.path('files/state.1.json'))).toBe(true)
    await place.ok(['lock', 'acquire', 'x'], store('sqlite:other/mine.db'))
    expect(existsSync(place.path('other/mine.db'))).toBe(true)
    await place.refused(['lock', 'list'], 'invalid', 2, store('redis://x'))
  })

  test('two kinds of store are never used side by side in one folder', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x'])
    const file = { env: { LEASEHOLD_STORE: 'file:' } }
    await place.refused(['lock', 'acquire', 'x'], 'invalid', 2, file)
    const other = { env: { LEASEHOLD_STORE: 'file:', LEASEHOLD_DIR: place.path('second') } }
    await place.ok(['lock', 'acquire', 'x'], other)
    const env = { LEASEHOLD_DIR: place.path('second') }
    const { details } = await place.refused(['lock', 'acquire', 'x'], 'invalid', 2, { env })
    expect(details.found).toBe('state.1.json')
  })
})
