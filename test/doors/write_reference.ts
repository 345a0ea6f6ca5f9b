import { readFileSync, writeFileSync } from 'node:fs'
import { reference } from '../../src/operations/reference.ts'
import { troubleshooting } from '../e2e/wrong_page.ts'
import { SITUATIONS } from '../e2e/wrong_situations.ts'
import { WAYS_BEGIN, WAYS_END, waysText } from '../hooks/ways.ts'
import { eventPage } from './event_page.ts'

/** `npm run reference`: writes the pages that the reference test compares. */
writeFileSync(new URL('../../docs/reference.md', import.meta.url), reference())
writeFileSync(new URL('../../docs/events.md', import.meta.url), eventPage())
const trouble = new URL('../../docs/troubleshooting.md', import.meta.url)
writeFileSync(trouble, troubleshooting(SITUATIONS))
const hooks = new URL('../../docs/hooks.md', import.meta.url)
const page = readFileSync(hooks, 'utf8')
const [before, rest] = page.split(WAYS_BEGIN) as [string, string]
writeFileSync(hooks, `${before}${waysText()}${rest.split(WAYS_END)[1]}`)
