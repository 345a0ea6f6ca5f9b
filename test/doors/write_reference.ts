import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { reference } from '../../src/operations/reference.ts'
import { troubleshooting } from '../e2e/wrong_page.ts'
import { SITUATIONS } from '../e2e/wrong_situations.ts'
import { PLUGIN_FILES } from '../plugins/files.ts'
import { eventPage } from './event_page.ts'

/** `npm run reference`: writes the pages and plugins that tests compare. */
const FILES: Record<string, string> = {
  'docs/reference.md': reference(),
  'docs/events.md': eventPage(),
  'docs/troubleshooting.md': troubleshooting(SITUATIONS),
  ...PLUGIN_FILES,
}
for (const [path, text] of Object.entries(FILES)) {
  const file = resolve(import.meta.dirname, '../..', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
