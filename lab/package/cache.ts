import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Runner } from './run.ts'

/**
 * Makes a cache as this Node would, for the very program that is installed, but compiled from
 * another text of the same length: a Node that trusts the cache says so, or crashes.
 */
const POISON = `
const { readFileSync, writeFileSync } = require('node:fs')
const { Script } = require('node:vm')
const [cli, to] = process.argv.slice(1)
const source = readFileSync(cli, 'utf8')
const params = 'exports, require, module, __filename, __dirname'
const wrap = (text) => '(function (' + params + ') { ' + text + '\\n})'
const text = "console.log('trusted')".padEnd(source.length)
const script = new Script(wrap(text), { filename: 'leasehold/cli.cjs' })
const say = console.log
console.log = () => undefined
script.runInThisContext()()
console.log = say
const { version, versions, arch } = process
const madeWith = [source.slice(2, 34), version, versions.v8, arch].join(' ')
writeFileSync(to, Buffer.concat([Buffer.from(madeWith, 'latin1'), script.createCachedData()]))
`

/** A cache that each Node made, given to each: only its own maker may trust it. */
export function crossCaches(runner: Runner, place: string, nodes: [string, string][]): string[] {
  const dist = join(place, 'node_modules/leasehold/dist')
  const bin = join(place, 'node_modules/leasehold/bin/leasehold')
  const faults: string[] = []
  for (const [maker, made] of nodes) {
    runner.must([made, '-e', POISON, join(dist, 'cli.cjs'), join(dist, 'cli.cache')], place)
    for (const [user, node] of nodes) {
      const { code, out, err } = runner.run([node, bin, '--version'], place)
      const isRight = maker === user ? out === 'trusted\n' : /^\d+\.\d+\.\d+\n$/.test(out)
      if (code !== 0 || err !== '' || !isRight) {
        faults.push(`a cache of ${maker} on ${user}: exit ${code}, ${out}${err}`)
      }
    }
  }
  rmSync(join(dist, 'cli.cache'))
  return faults
}
