import { plantAsTold } from '../machine/test_build.ts'
import { main } from './main.ts'

plantAsTold()

// `node leasehold hook AGENT EVENT`
void main(process.argv.slice(process.argv[2] === 'hook' ? 3 : 2))
