import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { reference } from '../../src/operations/reference.ts'
import { troubleshooting } from '../../test/e2e/wrong_page.ts'
import { SITUATIONS } from '../../test/e2e/wrong_situations.ts'
import { WAYS_BEGIN, WAYS_END, waysText } from '../../test/hooks/ways.ts'
import { PLUGIN_FILES } from './plugin_files.ts'
import { eventPage } from './event_page.ts'

const at = (path: string) => resolve(import.meta.dirname, '../..', path)

/** The page with its generated part made new. */
function hooksPage(): string {
  const [before, rest] = readFileSync(at('docs/hooks.md'), 'utf8').split(WAYS_BEGIN) as [
    string,
    string,
  ]
  return `${before}${waysText()}${rest.split(WAYS_END)[1]}`
}

/** `npm run reference`: writes the pages and plugins that tests compare. */
const FILES: Record<string, string> = {
  'docs/reference.md': reference(),
  'docs/events.md': eventPage(),
  'docs/troubleshooting.md': troubleshooting(SITUATIONS),
  'docs/hooks.md': hooksPage(),
  ...PLUGIN_FILES,
}
for (const [path, text] of Object.entries(FILES)) {
  mkdirSync(dirname(at(path)), { recursive: true })
  writeFileSync(at(path), text)
}
