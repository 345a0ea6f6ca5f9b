import { afterAll, describe, expect, test } from 'vitest'
import { answerOf } from '../../src/doors/mcp/answers.ts'
import { FileModel } from './model.ts'
import { Notes, STORES } from './scene.ts'

const model = new FileModel()
afterAll(() => model.close())

const BODY = 'Our main PostgreSQL database listens on the port'

describe.each(STORES)('on %s', (kind) => {
  test('notes with another number, name or negation are a contradiction', async () => {
    const notes = new Notes(kind)
    await notes.put('one', `${BODY} 5432.`)
    await notes.put('two', `${BODY} 5433.`)
    await notes.keeper(async () => model.shared)
    await notes.settled()
    const listed = await notes.ask('duplicate.list', {})
    expect(listed.items).toMatchObject([
      { label: 'contradicts', a: { key: 'one' }, b: { key: 'two' } },
    ])
    expect(listed.items[0].a.excerpt).toContain('5432')
    expect(listed.items[0].b.excerpt).toContain('5433')
    await notes.put('two', `${BODY} 5432!`, { based_on: 1 })
    await notes.settled()
    expect((await notes.ask('duplicate.list', {})).items).toMatchObject([{ label: null }])
  })

  test('a pair is judged by the versions that it shows', async () => {
    const notes = new Notes(kind)
    await notes.put('disputed', 'Release notes are written by the product team.')
    await notes.put('disputed', `${BODY} 5432.`, {}, 'bob')
    await notes.put('other', `${BODY} 5432.`, {}, 'cy')
    await notes.keeper(async () => model.shared)
    await notes.settled()
    // What bob wrote is the same as the other note, but the note is shown by what ada wrote.
    expect((await notes.ask('duplicate.list', {})).items).toEqual([])
  })

  test('a note in conflict is listed with the version that its author wrote', async () => {
    const notes = new Notes(kind)
    const { version } = await notes.put('disputed', 'What ada says.')
    await notes.put('disputed', 'What bob says, at greater length.', {}, 'bob')
    const { items } = await notes.ask('memory.list', {})
    const whole = await notes.ask('memory.get', { key: 'disputed' })
    expect(items).toMatchObject([{ author: 'ada', version, conflict: true }])
    for (const field of ['author', 'version', 'size', 'confidence', 'tags']) {
      expect(items[0][field], field).toEqual(whole[field])
    }
    expect(items[0].updated_at).toBe(whole.created_at)
    const found = await notes.ask('memory.search', { query: 'ada says', mode: 'text' })
    expect(found.items).toMatchObject([{ author: 'ada', version, disputed: true }])
  })

  test('a page of pairs is short, however many there are', async () => {
    const notes = new Notes(kind)
    const long = `${BODY} 5432. ${'It is the same on every machine that we have. '.repeat(20)}`
    await Promise.all(Array.from({ length: 16 }, (_, i) => notes.put(`note ${i}`, `${long}${i}`)))
    // What the model says of them is nothing to this: they are all alike.
    const embed = async (texts: string[]) => texts.map(() => Float32Array.from([3, 4]))
    await notes.keeper(async () => ({ ...model.shared, name: 'same', dimensions: 2, embed }))
    await notes.settled()
    const page = await notes.ask('duplicate.list', {})
    expect(page.items).toHaveLength(10)
    expect(page.next).not.toBeNull()
    expect(JSON.stringify(answerOf('duplicate.list', page)).length).toBeLessThan(16_000)
  })
})
