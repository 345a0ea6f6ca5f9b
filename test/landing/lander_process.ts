import { plant, type Promised } from '../../src/core/planted.ts'
import { Landers } from '../../src/daemon/lander/landers.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'

/** A lander without the rest of a daemon, to be stopped and killed. */
const { env } = process
plant(env['LEASEHOLD_PLANT'] as Promised | undefined)
const place = placeOf(env, process.cwd())
const store = openStore(place)
await store.follow(20)
const say = (sentence: string) => void process.stderr.write(`${sentence}\n`)
const landers = new Landers(store, { place, env, say })
await landers.start()
process.stdout.write('ready\n')
process.on('SIGTERM', () => void landers.stop().then(() => process.exit(0)))
