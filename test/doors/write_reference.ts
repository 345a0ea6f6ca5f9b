import { writeFileSync } from 'node:fs'
import { reference } from '../../src/operations/reference.ts'

/** `npm run reference`: writes the page that the reference test compares. */
writeFileSync(new URL('../../docs/reference.md', import.meta.url), reference())
