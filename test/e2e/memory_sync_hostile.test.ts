import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import { because } from '../support/processes.ts'
import { Notes } from './notes.ts'

/** Programs of the system, where it has them; no package brings them. */
const [MOUNT, UMOUNT] = ['mount', 'umount'] as const

const skippedIn = ({ skipped }: Json): Record<string, string> =>
  Object.fromEntries(skipped.map(({ path, why }: Json) => [path, why]))
const NOTHING = { imported: [], exported: [], removed: [], deleted: [], conflicts: [] }

describe('keys that are nearly the same', () => {
  test('have files of their own, and come back from files alone', async () => {
    const notes = new Notes()
    const keys = [
      ...[
        'caf\u00e9',
        'cafe\u0301',
        'Caf\u00e9',
        'cafe',
        'cafe ',
        ' cafe',
        'CAFE',
        'cafe.',
        '.cafe',
      ],
      ...['a/b', 'a%2Fb', 'a%2fb', 'a~b', 'x.conflict-1', 'x', 'nul', 'NUL.txt', '__proto__', '-'],
      ...['錠'.repeat(170), '錠'.repeat(169), 'y'.repeat(256), 'Y'.repeat(256), '𝄞'.repeat(128)],
    ]
    for (const key of keys) await notes.put(key, `this is ${key}`)
    await notes.sync()
    const files = notes.files()
    expect(new Set(files.map((each) => each.toLowerCase())).size).toBe(keys.length)
    for (const file of files) expect(Buffer.byteLength(file.split('/')[1]!)).toBeLessThan(128)
    expect(await notes.sync()).toMatchObject({ ...NOTHING, skipped: [] })

    // Another store has nothing but the files.
    rmSync(notes.at('.leasehold-sync.json'))
    const other = new Notes()
    renameSync(notes.dir, other.at('../moved'))
    const sync = ['memory', 'sync', other.at('../moved')]
    const { imported, skipped } = await other.place.ok(sync)
    expect(skipped).toEqual([])
    expect(imported.map(({ key }: Json) => key).toSorted()).toEqual(keys.toSorted())
    for (const key of keys) expect((await other.get(key)).content).toBe(`this is ${key}`)
    expect(await other.place.ok(sync)).toMatchObject({ imported: [], conflicts: [] })
  })
})

describe('a file or folder that is no longer what it was', () => {
  test('deletes no note, and nothing is written through a link', async () => {
    const notes = new Notes()
    for (const scope of ['project:web', 'project:api', 'user:ada', 'global', 'task:1']) {
      for (const key of ['one', 'two']) await notes.put(key, 'first', { scope })
    }
    await notes.sync()
    const outside = notes.place.path('outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'one.md'), 'not yours')
    // A linked folder, a file for a folder, a folder for a file, a linked file, one too long.
    rmSync(notes.at('project/web'), { recursive: true })
    symlinkSync(outside, notes.at('project/web'))
    rmSync(notes.at('user'), { recursive: true })
    writeFileSync(notes.at('user'), 'a file')
    rmSync(notes.at('global/one.md'))
    mkdirSync(notes.at('global/one.md'))
    rmSync(notes.at('global/two.md'))
    symlinkSync(join(outside, 'one.md'), notes.at('global/two.md'))
    writeFileSync(notes.at(`task/1/${'é'.repeat(110)}.md`), 'long')
    await notes.put('one', 'second', { scope: 'project:web', based_on: 1 })
    await notes.put('three', 'new', { scope: 'project:web' })
    await notes.put('one', 'second', { scope: 'user:ada', based_on: 1 })
    await notes.put('one', 'second', { based_on: 1 })

    const synced = await notes.sync()
    expect(synced).toMatchObject(NOTHING)
    const link = 'project/web is a link, and links are not followed'
    expect(skippedIn(synced)).toEqual({
      'project/web/one.md': link,
      'project/web/two.md': link,
      'project/web/three.md': link,
      'user/ada/one.md': 'user is not a folder',
      'user/ada/two.md': 'user is not a folder',
      'global/one.md': 'it is not a plain file',
      'global/two.md': 'it is not a plain file',
      [`task/1/${'é'.repeat(110)}.md`]: 'its name is longer than 200 bytes',
    })
    expect(readdirSync(outside)).toEqual(['one.md'])
    expect(readFileSync(join(outside, 'one.md'), 'utf8')).toBe('not yours')

    // Put right, all comes back.
    for (const path of ['project/web', 'user', 'global/one.md', 'global/two.md']) {
      rmSync(notes.at(path), { recursive: true })
    }
    await notes.put('two', 'still here', { based_on: 1 })
    const after = await notes.sync('--scope', 'global', '--allow-deletions')
    expect(after.conflicts).toHaveLength(2)
    expect(notes.body('global/two.md')).toBe('still here\n')
  })
})

describe('what a person does to a file', () => {
  test('is kept as it is: line ends, marks of order, lines added to the front', async () => {
    const notes = new Notes()
    for (const key of ['crlf', 'bom', 'cut', 'more', 'tags', 'named', 'gone']) {
      await notes.put(key, 'one\ntwo\n', { tags: ['t'] })
    }
    await notes.sync()
    notes.edit('global/crlf.md', (text) => text.replaceAll('\n', '\r\n'))
    notes.edit('global/bom.md', (text) => `\uFEFF${text}three\n`)
    notes.edit('global/cut.md', (text) => text.replace('\n---\n', '\n'))
    notes.edit('global/more.md', (text) => text.replace('author:', 'title: mine\nauthor:'))
    notes.edit('global/tags.md', (text) => text.replace('tags: [t]', 'tags:\n  - t\n  - u'))
    notes.edit('global/named.md', (text) => text.replace('key: named', 'key: other'))
    notes.edit('global/gone.md', () => 'no front matter any more\n')
    const before = Object.fromEntries(notes.files().map((path) => [path, notes.read(path)]))
    for (const key of ['cut', 'more', 'named']) await notes.put(key, 'by ada', { based_on: 1 })

    const synced = await notes.sync()
    expect(skippedIn(synced)).toEqual({
      'global/cut.md': expect.stringContaining('no line --- ends it') as string,
      'global/more.md': expect.stringContaining('what is "title: mine"?') as string,
      'global/named.md': expect.stringContaining('another note (global other)') as string,
    })
    expect(synced.conflicts).toEqual([])
    expect(Object.fromEntries(notes.files().map((path) => [path, notes.read(path)]))).toEqual(
      before,
    )
    const says = async (key: string) => (await notes.get(key)).content as string
    expect(await says('crlf')).toBe('one\r\ntwo\r\n')
    expect(await says('bom')).toBe('one\ntwo\nthree\n')
    expect(await says('gone')).toBe('no front matter any more\n')
    expect(await notes.get('tags')).toMatchObject({ tags: ['t', 'u'], content: 'one\ntwo\n' })
    expect((await notes.get('gone')).tags).toEqual(['t'])

    // Mended, it is a change on the version that it grew from.
    notes.edit('global/cut.md', () => before['global/bom.md']!.replace('key: bom', 'key: cut'))
    expect((await notes.sync()).conflicts).toMatchObject([{ path: 'global/cut.md' }])
    // Tags that were changed while nobody remembered what was synced are a change too.
    notes.edit('global/tags.md', (text) => text.replace('  - u\n', '  - v\n'))
    rmSync(notes.at('.leasehold-sync.json'))
    await notes.sync()
    const heads = await notes.get('tags')
    expect([heads, ...heads.siblings].map(({ tags }) => tags.join())).toContain('t,v')
  })
})

describe('a folder that cannot be written', () => {
  test('full: unavailable, every file as it was, then made up for', async (context) => {
    const notes = new Notes()
    const options = ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', notes.dir]
    const mounted = spawnSync(MOUNT, options, { encoding: 'utf8' })
    // reason: a full disk takes a disk that can be filled, and only root can mount one
    if (mounted.status !== 0) context.skip(because(`no small disk: ${mounted.stderr.trim()}`))
    onTestFinished(() => void execFileSync(UMOUNT, ['--lazy', notes.dir]))
    await notes.put('k', 'one')
    await notes.put('l', 'one')
    await notes.sync()
    const { bavail, bsize } = statfsSync(notes.dir)
    writeFileSync(notes.at('filler'), Buffer.alloc(bavail * bsize))
    await notes.put('k', 'x'.repeat(50_000), { based_on: 1 })
    const no = await notes.place.refused(['memory', 'sync', notes.dir], 'unavailable', 75)
    expect(no.message).toContain('The disk is full')
    expect(notes.files()).toEqual(['filler', 'global/k.md', 'global/l.md'])
    expect(notes.body('global/k.md')).toBe('one\n')
    rmSync(notes.at('filler'))
    expect(await notes.sync()).toMatchObject({ exported: ['global/k.md'], conflicts: [] })
  })

  test('read-only, or not to be read: a typed refusal, and no note is deleted', async (context) => {
    const notes = new Notes()
    // reason: modes do not bind root, and only root can become another login to be bound by them
    if (process.getuid?.() !== 0) context.skip(because('not root: modes cannot be tried'))
    await notes.put('k', 'one')
    await notes.put('k', 'one', { scope: 'project:web' })
    await notes.put('l', 'one')
    await notes.sync()
    execFileSync('chown', ['-R', '65534:65534', notes.place.folder])
    chmodSync(notes.place.folder, 0o755)
    const as = { uid: 65_534 }
    const sync = ['memory', 'sync', notes.dir]
    await notes.place.ok(['memory', 'put', 'k', 'two', '--based-on', '1'], as)
    chmodSync(notes.at('global'), 0o500)
    const no = await notes.place.refused(sync, 'unavailable', 75, as)
    expect(no.message).toContain('cannot be synced')
    expect(notes.body('global/k.md')).toBe('one\n')
    chmodSync(notes.at('global'), 0o700)
    chmodSync(notes.at('project/web'), 0)
    const { deleted, exported, skipped } = await notes.place.ok(sync, as)
    expect({ deleted, exported }).toEqual({ deleted: [], exported: ['global/k.md'] })
    expect(skipped).toMatchObject([{ path: 'project/web/k.md' }])
  })
})
