import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Note, parse, render, type Said } from '../../src/doors/cli/sync/front.ts'
import { isOurs, nameIn, pathOf, siblingPath } from '../../src/doors/cli/sync/names.ts'

const NOTE: Note = {
  ...{ scope: 'project:web', key: 'build', version: 3, author: 'ada', confidence: null },
  ...{ tags: [], updated: '2026-11-15T10:00:00.000Z', expires: null, content: 'x\n' },
}
const free = () => false
const text = fc.string({ unit: 'grapheme', maxLength: 40 })

describe('a note as a file', () => {
  test('is Markdown with front matter that any reader understands', () => {
    const tags = ['a', 'b, c']
    expect(render({ ...NOTE, key: '日本 "x"', confidence: 0.5, tags, content: 'Hello' })).toBe(
      [
        ...[
          '---',
          'scope: project:web',
          String.raw`key: "日本 \"x\""`,
          'version: 3',
          'author: ada',
        ],
        ...['confidence: 0.5', 'tags: [a, "b, c"]', 'updated: 2026-11-15T10:00:00.000Z'],
        ...['end: open', '---', 'Hello', ''],
      ].join('\n'),
    )
  })

  test('is read back as it was written, whatever it says', () => {
    const hostile = fc.constantFrom('---\n', '\n---\nkey: other\n---\n', '\r\n', '\uFEFF', '')
    const content = fc.array(fc.oneof(text, hostile)).map((parts) => parts.join(''))
    fc.assert(
      fc.property(content, text, fc.array(text), (said, key, tags) => {
        const back = parse(render({ ...NOTE, content: said, key: key || 'k', tags })) as Said
        expect(back.content).toBe(said)
        expect(back.key).toBe(key || 'k')
        expect(back.tags).toEqual(tags.filter((tag) => tag !== ''))
        expect(back.version).toBe(3)
      }),
      { numRuns: 500 },
    )
  })

  test('may have no front matter, or that of another program, which is then its content', () => {
    expect(parse('Just text')).toEqual({ content: 'Just text' })
    const other = '---\ntitle: A page\nlayout: post\n---\nText\n'
    expect(parse(other)).toEqual({ content: other })
    expect(parse('---\nnever closed\n')).toEqual({ content: '---\nnever closed\n' })
  })

  test('may be written by a person, by half and with other quotes', () => {
    const said = parse("---\r\nkey: 'how to build'\r\ntags: [a, b]\r\n---\r\nmake\r\n")
    expect(said).toEqual({ key: 'how to build', tags: ['a', 'b'], content: 'make\r\n' })
    expect(parse('---\nversion: -1\nconfidence: 7\ntags: a\n---\n')).toEqual({
      content: '',
      tags: ['a'],
    })
    const tags = ['a', 'b, c', 'd']
    expect(parse('---\ntags:\n  - a\n  - "b, c"\n- d\nkey: k\n---\nx')).toEqual({
      ...{ key: 'k', tags, content: 'x' },
    })
  })

  test('is not taken for content where its front matter is ours, and broken', () => {
    const ours = 'scope: global\nkey: k\nversion: 3\n'
    expect(parse(`---\n${ours}text\n`)).toMatch(/no line --- ends it.*mend it/)
    expect(parse(`---\n${ours}title: x\n---\ntext\n`)).toMatch(/what is "title: x"\?/)
    expect(parse(`---\n${ours}<<<<<<< HEAD\n---\n`)).toMatch(/broken/)
    expect(parse(`---\r\n${ours.replaceAll('\n', '\r\n')}tags\r\n---\r\n`)).toMatch(/broken/)
    // Of another program, or no front matter at all: a text like any other.
    expect(parse('---\nkey: k\ntitle: x\n---\n')).toEqual({
      content: '---\nkey: k\ntitle: x\n---\n',
    })
  })
})

describe('the name of a file', () => {
  test.each([
    ['global', 'build', 'global/build.md'],
    ['project:web', 'api/auth', 'project/web/api%2Fauth.md'],
    ['user:../../x', '../../etc/passwd', 'user/%2E.%2F..%2Fx/%2E.%2F..%2Fetc%2Fpasswd.md'],
    ['global', '.hidden', 'global/%2Ehidden.md'],
    ['global', 'dots.', 'global/dots%2E.md'],
    ['project:a..b', ' .. ', 'project/a..b/%20..%20.md'],
    ['global', 'CON', 'global/%43ON.md'],
    ['task:42', 'ä~b', 'task/42/%C3%A4%7Eb.md'],
  ])('of %s %s is %s', (scope, key, path) => {
    expect(pathOf(scope, key, free)).toBe(path)
    expect(nameIn(path)).toEqual({ scope, key })
    expect(isOurs(path)).toBe(true)
  })

  test('means the same key whether a system writes its letters in one or apart', () => {
    const [one, apart] = ['caf\u00e9', 'cafe\u0301']
    expect(nameIn(`global/${one}.md`)).toEqual({ scope: 'global', key: one })
    expect(nameIn(`global/${apart}.md`)).toEqual({ scope: 'global', key: one })
    // What we wrote is what was said, letter by letter.
    for (const key of [one, apart]) {
      expect(nameIn(pathOf('global', key, free))).toEqual({ scope: 'global', key })
    }
    expect(pathOf('global', one, free)).not.toBe(pathOf('global', apart, free))
  })

  test('never leaves its folder, never hides, and says the key where it can', () => {
    const key = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 })
    fc.assert(
      fc.property(key, (each) => {
        const path = pathOf(`project:${each}`, each, free)
        expect(isOurs(path)).toBe(true)
        expect(path).toMatch(/^project\/[A-Za-z0-9_%~-][\w.%~-]*\/[A-Za-z0-9_%~-][\w.%~-]*\.md$/)
        for (const part of path.split('/')) expect(part.length).toBeLessThan(128)
        if (!path.includes('~'))
          expect(nameIn(path)).toEqual({ scope: `project:${each}`, key: each })
      }),
      { numRuns: 500 },
    )
  })

  test('is another where it is taken, whatever the case, or looks like that of a sibling', () => {
    const taken = new Set(['global/build.md'])
    const isTaken = (path: string) => taken.has(path.toLowerCase())
    expect(pathOf('global', 'Build', isTaken)).toMatch(/^global\/Build~[0-9a-f]{12}\.md$/)
    expect(pathOf('global', 'x.conflict-3', free)).toMatch(/^global\/x\.conflict-3~[0-9a-f]+\.md$/)
    expect(siblingPath('global/x.md', 3)).toBe('global/x.conflict-3.md')
    expect(nameIn('global/x.conflict-3.md')).toBeUndefined()
    for (const path of [
      '../x.md',
      'global/../../x.md',
      'project/../x.md',
      'project/web/..x.md',
      '/etc/x.md',
      'other/x.md',
      'global/x.txt',
    ]) {
      expect(isOurs(path), path).toBe(false)
    }
  })
})
