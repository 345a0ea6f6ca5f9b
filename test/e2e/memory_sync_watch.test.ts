import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { daemonOn } from '../support/daemons.ts'
import type { Json } from '../doors/serving.ts'
import { type Running, until } from '../support/processes.ts'
import { Notes } from './notes.ts'

/** Starts it, and waits until it has looked at everything once. */
async function watching(notes: Notes, ...more: string[]): Promise<Running> {
  const running = notes.place.start(['--json', 'memory', 'sync', notes.dir, '--watch', ...more])
  await running.said(/\{.*\}\n/)
  return running
}

const said = (running: Running): Json[] =>
  running.out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Of all that it has said, the items under one name. */
const all = (running: Running, what: string): Json[] => said(running).flatMap((each) => each[what])

async function end(running: Running): Promise<void> {
  running.kill('SIGINT')
  expect(await running.ended).toMatchObject({ code: 0, signal: null, err: '' })
}

describe('memory sync --watch', () => {
  test('brings changes over as they happen, both ways, and says so', async () => {
    const notes = new Notes()
    await notes.put('k', 'one')
    const running = await watching(notes)
    expect(said(running)).toMatchObject([{ exported: ['global/k.md'] }])

    await notes.put('k', 'two', { based_on: 1 })
    await until('the note is written', () => notes.body('global/k.md') === 'two\n')
    notes.edit('global/k.md', (text) => text.replace('two', 'three'))
    const isPut = async () => (await notes.get('k')).content === 'three'
    await until('the file is put', isPut)
    // A folder that was not there, with a file in it at once.
    notes.write('project/new/first.md', 'by hand')
    const scope = 'project:new'
    await until('a new folder is seen', () => notes.get('first', { scope }).catch(() => undefined))
    await notes.ask('memory.delete', { key: 'first', scope })
    await until('its file goes', () => !existsSync(notes.at('project/new/first.md')))

    await until('all is said', () => all(running, 'removed').length > 0)
    expect(all(running, 'imported')).toMatchObject([
      { path: 'global/k.md', version: 3 },
      { path: 'project/new/first.md', version: 1 },
    ])
    expect(all(running, 'conflicts')).toEqual([])
    await end(running)
    // Nothing is left to do, and nothing was done twice.
    expect(await notes.sync()).toMatchObject({ imported: [], exported: [], conflicts: [] })
    expect((await notes.ask('memory.history', { key: 'k' })).items).toHaveLength(3)
  })

  test('takes a file for removed only if it stays away', async () => {
    const notes = new Notes()
    for (const key of ['gone', 'saved', 'other']) await notes.put(key, 'one')
    const running = await watching(notes)
    rmSync(notes.at('global/gone.md'))
    // As some editors save: away with the old, a moment later the new. It looks in between.
    const text = notes.read('global/saved.md')
    const began_ms = performance.now()
    renameSync(notes.at('global/saved.md'), notes.place.path('backup'))
    notes.edit('global/other.md', (each) => each.replace('one', 'seen'))
    await until('it has looked', async () => (await notes.get('other')).content === 'seen')
    writeFileSync(notes.at('global/saved.md'), text.replace('one', 'two'))
    const isInTime = performance.now() - began_ms < 1_500
    await until('the note is deleted', () => all(running, 'deleted').length > 0)
    await until('it is put', async () => (await notes.get('saved')).content === 'two')
    const keys = all(running, 'deleted').map(({ key }) => key)
    const { items } = await notes.ask('memory.history', { key: 'saved' })
    const kinds = items.map(({ kind }: Json) => kind)
    // On a machine that is too busy to save in a moment, it may be seen to be gone.
    expect(keys).toEqual(isInTime ? ['gone'] : expect.arrayContaining(['gone']))
    expect(kinds).toEqual(isInTime ? ['put', 'put'] : expect.arrayContaining(['put', 'put']))
    await end(running)
  })

  test('keeps both where both changed, and goes on where something is in the way', async () => {
    const notes = new Notes()
    await notes.put('k', 'one')
    await notes.put('l', 'one')
    const running = await watching(notes)
    // Both change while it cannot look.
    await running.stop()
    notes.edit('global/k.md', (text) => text.replace('one', 'by hand'))
    await notes.put('k', 'by ada', { based_on: 1 })
    running.kill('SIGCONT')
    await until('a conflict', () => all(running, 'conflicts').length > 0)
    await until('the other lies beside', () => existsSync(notes.at('global/k.conflict-2.md')))
    expect(notes.body('global/k.md')).toBe('by hand\n')

    // All files away at once is no wish to delete all notes.
    renameSync(notes.at('global'), notes.place.path('away'))
    await running.said(/All \d files that were synced .* are gone/)
    renameSync(notes.place.path('away'), notes.at('global'))
    notes.edit('global/l.md', (text) => text.replace('one', 'two'))
    await until('it goes on', async () => (await notes.get('l')).content === 'two')
    expect(all(running, 'deleted')).toEqual([])

    renameSync(notes.dir, notes.place.path('elsewhere'))
    const ended = await running.ended
    expect(ended).toMatchObject({ code: 3 })
    expect(ended.err).toContain('is gone')
    expect((await notes.get('l')).content).toBe('two')
    expect(existsSync(notes.dir)).toBe(false)
  })

  test('holds the lock until it is ended, or killed', async () => {
    const notes = new Notes()
    const first = await watching(notes)
    const sync = ['memory', 'sync', notes.dir]
    const no = await notes.place.refused([...sync, '--watch'], 'held', 5)
    expect(no.message).toContain(`(PID: ${first.pid})`)
    first.kill('SIGKILL')
    await first.ended
    const second = await watching(notes)
    await notes.place.refused(sync, 'held', 5)
    await end(second)
    expect((await notes.place.ok(['lock', 'list'])).items).toEqual([])
    await notes.sync()
  })

  test('through a server hears of notes by its events, and goes on without it', async () => {
    const notes = new Notes()
    const daemon = await daemonOn(notes.place)
    await notes.put('k', 'one')
    const running = await watching(notes)
    await notes.put('k', 'two', { based_on: 1 })
    await until('the note is written', () => notes.body('global/k.md') === 'two\n')
    daemon.running.kill('SIGKILL')
    await daemon.running.ended
    await notes.put('k', 'three', { based_on: 2 })
    await until('it is written all the same', () => notes.body('global/k.md') === 'three\n')
    await until('all is said', () => all(running, 'exported').length === 3)
    expect(all(running, 'conflicts')).toEqual([])
    await end(running)
  })

  test('tells a person a line per change', async () => {
    const notes = new Notes()
    mkdirSync(notes.at('global/folder.md'), { recursive: true })
    await notes.put('k', 'one')
    const running = notes.place.start(['memory', 'sync', notes.dir, '--watch'])
    await running.said(/watching .*: Ctrl-C ends it\n/)
    notes.write('global/new.md', 'x')
    await running.said(/in global\/new\.md \(version 1\)\n/)
    running.kill('SIGTERM')
    const { code, out } = await running.ended
    expect(code).toBe(0)
    expect(out.match(/out global\/k\.md\n/g)).toHaveLength(1)
    // What is skipped every time is told once.
    expect(out.match(/skipped global\/folder\.md: it is not a plain file\n/g)).toHaveLength(1)
  })
})
