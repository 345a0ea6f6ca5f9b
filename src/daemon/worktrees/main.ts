import { readFileSync } from 'node:fs'
import { plantAsTold } from '../../machine/test_build.ts'
import { Refusal } from '../../core/refusal.ts'
import { takeMark } from '../../machine/group.ts'
import { host, ownProcess } from '../../machine/process.ts'
import { RunAsking } from '../runner/asking.ts'
import { keepRepository } from './keep.ts'
import type { KeeperSaid, KeeperSpec } from './keeper.ts'

const PATIENCE_MS = 60_000

plantAsTold()
takeMark()
const spec = JSON.parse(readFileSync(0, 'utf8')) as KeeperSpec
const agent = `keeper:${host}/${process.pid}`
const caller = { agent, given: true, process: ownProcess(), admin: true, under: null }
const asking = new RunAsking({ HOME: process.env['HOME'], ...spec.place }, caller, PATIENCE_MS)

async function keep(): Promise<KeeperSaid> {
  try {
    const why = await keepRepository((name, input) => asking.insist(name, input), spec)
    return { why: why ?? null, refused: null }
  } catch (error) {
    const said = error instanceof Refusal ? error : new Refusal('internal', String(error))
    return { why: null, refused: said.toJSON().error }
  }
}

void keep().then((said) => {
  process.stdout.write(JSON.stringify(said), () => process.exit(0))
})
