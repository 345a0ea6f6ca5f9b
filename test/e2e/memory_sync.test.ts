import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectRefusal } from '../support/helpers.ts'
import { sandbox, stateOf, TEST_CLI, until } from '../support/processes.ts'
import { Notes } from './notes.ts'

const WEB = { scope: 'project:web' }

describe('memory sync', () => {
  test('writes notes as files, and brings changes back, both ways', async () => {
    const notes = new Notes()
    await notes.put('build', 'make first', { ...WEB, tags: ['x', 'y'] })
    await notes.put('plan/1', 'two\nlines\n')
    expect(await notes.sync()).toMatchObject({
      exported: ['global/plan%2F1.md', 'project/web/build.md'],
    })
    expect(notes.read('project/web/build.md')).toMatch(
      /^---\nscope: project:web\nkey: build\nversion: 1\nauthor: ada\ntags: \[x, y\]\nupdated: /,
    )
    expect(notes.body('global/plan%2F1.md')).toBe('two\nlines\n')
    const nothing = { imported: [], exported: [], removed: [], deleted: [], conflicts: [] }
    expect(await notes.sync()).toMatchObject(nothing)

    notes.edit('project/web/build.md', (text) => text.replace('make first', 'npm ci'))
    notes.write('user/bob/likes.md', 'short answers')
    expect((await notes.sync('--agent', 'bob')).imported).toMatchObject([
      { path: 'project/web/build.md', version: 2 },
      { path: 'user/bob/likes.md', scope: 'user:bob', key: 'likes', version: 1 },
    ])
    const now = await notes.get('build', WEB)
    expect(now).toMatchObject({ content: 'npm ci', author: 'bob', parents: [1], tags: ['x', 'y'] })

    await notes.put('build', 'pnpm i', { ...WEB, based_on: 2 })
    expect((await notes.sync()).exported).toEqual(['project/web/build.md'])
    expect(notes.body('project/web/build.md')).toBe('pnpm i\n')
    expect(await notes.sync()).toMatchObject(nothing)
  })

  test('keeps both when file and note changed: the file stays, the other lies beside', async () => {
    const notes = new Notes()
    await notes.put('port', '5432')
    await notes.sync()
    notes.edit('global/port.md', (text) => text.replace('5432', '5433'))
    await notes.put('port', '5434', { based_on: 1 })
    const { conflicts, exported } = await notes.sync()
    expect(conflicts).toMatchObject([{ path: 'global/port.md' }])
    expect(exported).toEqual(['global/port.conflict-2.md'])
    expect(notes.body('global/port.md')).toBe('5433\n')
    expect(notes.body('global/port.conflict-2.md')).toBe('5434\n')

    // A side may still be edited; a removed file settles nothing.
    notes.edit('global/port.conflict-2.md', (text) => text.replace('5434', '5435'))
    await notes.sync()
    expect(notes.files()).toEqual(['global/port.conflict-4.md', 'global/port.md'])
    rmSync(notes.at('global/port.conflict-4.md'))
    await notes.sync()
    expect(notes.body('global/port.conflict-4.md')).toBe('5435\n')

    const { conflicts: ids } = await notes.get('port')
    await notes.ask('conflict.resolve', { id: ids[0], choose: 4 })
    expect(await notes.sync()).toMatchObject({
      exported: ['global/port.md'],
      removed: ['global/port.conflict-4.md'],
    })
    expect(notes.body('global/port.md')).toBe('5435\n')
    expect(notes.files()).toEqual(['global/port.md'])
  })

  test('deletes on both sides, only what nobody changed meanwhile', async () => {
    const notes = new Notes()
    for (const key of ['a', 'b', 'c', 'd']) await notes.put(key, key)
    await notes.sync()
    rmSync(notes.at('global/a.md'))
    rmSync(notes.at('global/b.md'))
    await notes.put('b', 'changed', { based_on: 1 })
    await notes.ask('memory.delete', { key: 'c' })
    await notes.ask('memory.delete', { key: 'd' })
    notes.edit('global/d.md', (text) => `${text}more\n`)
    const synced = await notes.sync()
    expect(synced.deleted).toMatchObject([{ key: 'a' }])
    expect(synced.removed).toEqual(['global/c.md'])
    expect(synced.conflicts).toHaveLength(2)
    await expectRefusal(notes.get('a'), 'not_found')
    expect(notes.body('global/b.md')).toBe('changed\n')
    expect(notes.body('global/d.md')).toBe('d\nmore\n')
    expect((await notes.get('d')).siblings).toMatchObject([{ kind: 'delete' }])
  })

  test('refuses to delete everything by accident, and follows a renamed file', async () => {
    const notes = new Notes()
    await notes.put('a', 'one')
    await notes.put('b', 'two')
    await notes.sync()
    renameSync(notes.at('global/a.md'), notes.at('global/renamed.md'))
    expect(await notes.sync()).toMatchObject({ deleted: [], imported: [] })
    rmSync(notes.at('global'), { recursive: true })
    const sync = ['memory', 'sync', notes.dir]
    const no = await notes.place.refused(sync, 'invalid', 2)
    expect(no.message).toContain('All 2 files')
    expect((await notes.sync('--allow-deletions')).deleted).toHaveLength(2)
    await notes.place.refused(['memory', 'sync', notes.at('nowhere')], 'not_found', 3)
  })

  test('goes by what a file says it grew from, when its own memory is lost', async () => {
    const notes = new Notes()
    await notes.put('k', 'one')
    await notes.sync()
    const old = notes.read('global/k.md')
    await notes.put('k', 'two', { based_on: 1 })
    await notes.sync()
    // An old file that git brought back is old, not a change.
    writeFileSync(notes.at('global/k.md'), old)
    rmSync(notes.at('.leasehold-sync.json'))
    expect(await notes.sync()).toMatchObject({ imported: [], exported: ['global/k.md'] })
    expect(notes.body('global/k.md')).toBe('two\n')
    // Changed on the old one, it disagrees with the new.
    writeFileSync(notes.at('global/k.md'), old.replace('one', 'three'))
    expect((await notes.sync()).conflicts).toHaveLength(1)
  })

  test('touches nothing outside of its folder, and nothing that is no text', async () => {
    const notes = new Notes()
    const secret = join(notes.place.folder, 'secret.md')
    writeFileSync(secret, 'secret')
    await notes.put('../../secret', 'x')
    await notes.put('.git', 'y')
    symlinkSync(secret, join(notes.dir, 'linked.md'))
    mkdirSync(notes.at('project'))
    symlinkSync(notes.place.folder, notes.at('project/away'))
    mkdirSync(notes.at('global'))
    symlinkSync(secret, notes.at('global/link.md'))
    writeFileSync(notes.at('global/binary.md'), Buffer.from([0xff, 0xfe, 0x00, 0x80]))
    writeFileSync(notes.at('global/long.md'), 'x'.repeat(2 * 1024 * 1024))
    writeFileSync(notes.at('global/nul.md'), 'a\0b')
    const { skipped, imported } = await notes.sync()
    expect(skipped.map(({ path }: { path: string }) => path).toSorted()).toEqual([
      ...['global/binary.md', 'global/link.md', 'global/long.md', 'global/nul.md'],
    ])
    expect(imported).toEqual([])
    expect(readFileSync(secret, 'utf8')).toBe('secret')
    expect(existsSync(join(notes.place.folder, 'x.md'))).toBe(false)
    expect(notes.files()).toContain('global/%2E.%2F..%2Fsecret.md')
    expect(notes.files()).toContain('global/%2Egit.md')
  })

  test('of a folder that belongs to another store is refused', async () => {
    const notes = new Notes()
    await notes.put('k', 'x')
    await notes.sync()
    const other = sandbox()
    const no = await other.refused(['memory', 'sync', notes.dir], 'invalid', 2)
    expect(no.message).toContain('another store')
  })
})

/** Where a sync is killed: before and after it wrote to the store, and while it replaces a file. */
const STEPS = ['sync:begun', 'sync:put', 'sync:taken', 'sync:placed', 'sync:exported']

describe('a sync that is stopped or killed', () => {
  const stopAt = async (notes: Notes, step: string) => {
    const env = { LEASEHOLD_STOP_AT: step }
    const program = [process.execPath, TEST_CLI]
    const running = notes.place.start(['--json', 'memory', 'sync', notes.dir], { env, program })
    await until(`${running.pid} stops at ${step}`, () => stateOf(running.pid) === 'T')
    return running
  }

  test('keeps others out while it lives, and no longer', async () => {
    const notes = new Notes()
    await notes.put('k', 'x')
    const first = await stopAt(notes, 'sync:begun')
    const no = await notes.place.refused(['memory', 'sync', notes.dir], 'held', 5)
    expect(no.message).toContain(`(PID: ${first.pid})`)
    first.kill('SIGKILL')
    await first.ended
    expect((await notes.sync()).exported).toEqual(['global/k.md'])
  })

  test.each(STEPS)('at %s loses nothing and invents no conflict', async (step) => {
    const notes = new Notes()
    await notes.put('out', 'one')
    await notes.put('in', 'one')
    await notes.sync()
    notes.edit('global/in.md', (text) => text.replace('one', 'by hand'))
    notes.write('global/new.md', 'by hand too')
    await notes.put('out', 'two', { based_on: 1 })
    const killed = await stopAt(notes, step)
    killed.kill('SIGKILL')
    await killed.ended
    // Somebody goes on from what the killed one may have written.
    const { version } = await notes.get('in')
    await notes.put('in', 'after the crash', { based_on: version })
    const { conflicts } = await notes.sync()
    const wasPut = step !== 'sync:begun'
    expect(conflicts).toHaveLength(wasPut ? 0 : 1)
    expect(await notes.sync()).toMatchObject({ imported: [], exported: [], conflicts: [] })
    expect(notes.body('global/out.md')).toBe('two\n')
    expect(notes.body('global/new.md')).toBe('by hand too')
    expect(notes.body('global/in.md')).toBe(wasPut ? 'after the crash\n' : 'by hand\n')
    const wanted = ['global/in.md', 'global/new.md', 'global/out.md']
    expect(notes.files().filter((path) => !path.includes('conflict'))).toEqual(wanted)
    const { items } = await notes.ask('memory.history', { key: 'in' })
    expect(items).toHaveLength(3)
  })
})
