import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { PLUGIN_FILES } from '../../lab/reference/plugin_files.ts'

const ROOT = resolve(import.meta.dirname, '../..')

it.each(Object.entries(PLUGIN_FILES))(
  '%s is what init would write (else: npm run reference)',
  (path, text) => {
    expect(readFileSync(join(ROOT, path), 'utf8')).toBe(text)
  },
)

it('the folders of the plugins hold nothing else', () => {
  const there = readdirSync(join(ROOT, 'plugins'), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1))
  expect(there.toSorted()).toEqual(
    Object.keys(PLUGIN_FILES)
      .filter((path) => path.startsWith('plugins/'))
      .toSorted(),
  )
})
