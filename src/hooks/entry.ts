import { plant, type Promised } from '../core/planted.ts'
import { main } from './main.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

// A bundle of its own has a switch of its own: see the command line's.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}

// `node leasehold hook AGENT EVENT`
void main(process.argv.slice(process.argv[2] === 'hook' ? 3 : 2))
