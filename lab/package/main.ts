import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { crossCaches } from './cache.ts'
import { timeToRefusal } from './newcomer.ts'
import { isBad, megabytes, Runner, type Said } from './run.ts'

/**
 * Packs the project as it would be published, installs it in an empty folder, and uses it there
 * with every Node that we name: `npm run package`. Nothing of the checkout is used but the tarball.
 */
const { values } = parseArgs({
  options: { node: { type: 'string', multiple: true }, keep: { type: 'boolean', default: false } },
})

/** What a newcomer may wait until an edit is refused, from the tarball on. */
const REFUSAL_SECONDS_MAX = 120
const TARBALL_MB_MAX = 3
const INSTALLED_MB_MAX = 72
const INSTALLED_LEAN_MB_MAX = 60

/** The oldest and the newest of each release, as published in the package of that name. */
const NODES = values.node ?? ['20.19.0', '20', '22', '24.0.0', '24']
/** Too old: each must say so in one line, however little of our syntax it knows. */
const OLD_NODES = values.node ? [] : ['20.18.3', '18', '12']
const ROOT = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'leasehold-package-'))
const runner = new Runner(join(folder, 'home'))
const run = runner.run.bind(runner)
const must = runner.must.bind(runner)

function emptyProject(name: string): string {
  const place = join(folder, name)
  mkdirSync(place)
  writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }')
  return place
}

function nodeOf(version: string): string {
  const place = emptyProject(`node-${version}`)
  const name = `node-${process.platform}-${process.arch}`
  must(['npm', 'install', '--no-save', '--loglevel=error', `${name}@${version}`], place)
  const bin = join(place, 'node_modules', name, 'bin/node')
  if (!existsSync(bin)) throw new Error(`${name}@${version} has no bin/node`)
  return bin
}

const EDIT = JSON.stringify({
  session_id: 'package',
  tool_name: 'Write',
  tool_input: { file_path: 'a.ts', content: 'x' },
})
const MCP = [
  {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'package', version: '1' },
    },
  },
  { jsonrpc: '2.0', method: 'notifications/initialized' },
  { jsonrpc: '2.0', id: 2, method: 'tools/list' },
]
const SDK = `const client = await connect({ embedded: true, agent: 'sdk' })
await client.task.create({ title: 'One' })
const { result } = await client.withTask({}, (_, { task }) => task.title)
await client.close()
if (result !== 'One') throw new Error(result)`

/** What a newcomer does first; each must end well and print nothing on standard error. */
function checks(node: string, place: string): [string, () => Said][] {
  const bin = join(place, 'node_modules/leasehold/bin/leasehold')
  const repo = join(place, 'repo')
  const cli = (...args: string[]) => run([node, bin, ...args], repo)
  const script = (name: string, text: string) => {
    writeFileSync(join(place, name), text)
    return run([node, join(place, name)], repo)
  }
  return [
    ['version', () => cli('--version')],
    ['claim', () => firstBad([cli('task', 'add', 'Try it'), cli('task', 'claim', '--agent', 'a')])],
    ['check', () => cli('db', 'check')],
    ['mcp', () => mcp(run([node, bin, 'mcp', '--agent', 'm'], repo, {}, lines(MCP)))],
    ['sdk', () => script('sdk.mjs', `import { connect } from 'leasehold'\n${SDK}`)],
    [
      'require',
      () =>
        script(
          'sdk.cjs',
          `const { connect } = require('leasehold')\nvoid (async () => {\n${SDK}\n})()`,
        ),
    ],
    // Last: from then on, all that this process starts is that agent's.
    ['hook', () => run([node, bin, 'hook', 'claude', 'pre-tool-use'], repo, {}, EDIT)],
  ]
}

const lines = (messages: object[]) => messages.map((each) => `${JSON.stringify(each)}\n`).join('')
const firstBad = (said: Said[]) => said.find(isBad) ?? said.at(-1)!
const mcp = (said: Said) => (said.out.includes('claim_task') ? said : { ...said, code: 1 })

/** Types as each way of resolving modules sees them, with nothing skipped. */
function typeChecks(place: string): [string, () => Said][] {
  const text = `import { connect, type ShownLease } from 'leasehold'
export async function use(): Promise<ShownLease> {
  const client = await connect({ agent: 'a' })
  return client.withLock('x', {}, (signal, lease) => (signal.throwIfAborted(), lease))
}\n`
  writeFileSync(join(place, 'use.ts'), text)
  const example = join(place, 'node_modules/leasehold/examples/typescript/agent.ts')
  writeFileSync(join(place, 'agent.ts'), readFileSync(example))
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const flags = ['--noEmit', '--strict', '--target', 'es2023', '--types', 'node']
  return [
    ['node16', 'node16'],
    ['nodenext', 'nodenext'],
    ['bundler', 'preserve'],
  ].map(([resolution, module]) => {
    const how = ['--moduleResolution', resolution!, '--module', module!]
    return [`types ${resolution}`, () => run([tsc, ...flags, ...how, 'use.ts', 'agent.ts'], place)]
  })
}

let isBroken = false
function tell(who: string, made: [string, () => Said][]): void {
  for (const [name, attempt] of made) {
    const said = attempt()
    if (!isBad(said)) continue
    isBroken = true
    console.log(`  FAILS ${who}: ${name}: exit ${said.code}\n${said.out.slice(-500)}${said.err}`)
  }
  console.log(`${who}: ${made.map(([name]) => name).join(', ')}`)
}

function say(what: string, isRight: boolean): void {
  isBroken ||= !isRight
  console.log(isRight ? what : `  FAILS ${what}`)
}

function install(name: string, ...what: string[]): string {
  const place = emptyProject(name)
  must(['npm', 'install', '--loglevel=error', ...what], place)
  return place
}

function sayMegabytes(what: string, path: string, max: number): void {
  const size = megabytes(path)
  say(`${what} ${size.toFixed(1)} MB (at most ${max})`, size <= max)
}

/** Without the model, notes are found by their words. */
function leanChecks(place: string): [string, () => Said][] {
  const bin = join(place, 'node_modules/leasehold/bin/leasehold')
  const cli = (...args: string[]) => run([process.execPath, bin, ...args], place)
  const found = () => {
    const said = cli('memory', 'search', 'make', '--json')
    return said.out.includes('make first') ? { ...said, err: '' } : { ...said, code: 1 }
  }
  return [
    ['claim', () => firstBad([cli('task', 'add', 'Try it'), cli('task', 'claim', '--agent', 'a')])],
    ['memory', () => firstBad([cli('memory', 'put', 'build', 'make first'), found()])],
  ]
}

try {
  mkdirSync(runner.home)
  const packed = must(['npm', 'pack', '--silent', '--pack-destination', folder], ROOT)
  const tarball = join(folder, packed.trim().split('\n').at(-1)!)
  sayMegabytes('tarball', tarball, TARBALL_MB_MAX)
  const { seconds, isRight, said } = await timeToRefusal(runner, folder, tarball)
  const isQuick = isRight && seconds < REFUSAL_SECONDS_MAX
  say(`from the tarball to a refused edit: ${seconds.toFixed(1)} s${isRight ? '' : said}`, isQuick)
  const place = install('installed', tarball)
  sayMegabytes('installed', join(place, 'node_modules'), INSTALLED_MB_MAX)
  const lean = install('lean', '--omit=optional', tarball)
  sayMegabytes('installed without the model', join(lean, 'node_modules'), INSTALLED_LEAN_MB_MAX)
  tell('without the model', leanChecks(lean))
  const nodes: [string, string][] = []
  for (const wanted of NODES) {
    const node = nodeOf(wanted)
    for (const fresh of [join(place, 'repo'), runner.home]) {
      rmSync(fresh, { recursive: true, force: true })
      mkdirSync(fresh)
    }
    must(['git', 'init', '-q'], join(place, 'repo'))
    const version = must([node, '--version'], place).trim()
    nodes.push([version, node])
    tell(`Node ${version}`, checks(node, place))
  }
  const faults = crossCaches(runner, place, nodes)
  const pairs = `${nodes.length} × ${nodes.length}`
  say(['a cache of each Node on each', pairs, ...faults].join('\n  '), faults.length === 0)
  must(['npm', 'install', '--no-save', '--loglevel=error', '@types/node@20'], place)
  for (const version of OLD_NODES) {
    const bin = join(place, 'node_modules/leasehold/bin/leasehold')
    const told = run([nodeOf(version), bin, 'lock', 'list'], place)
    const isTold = told.code === 1 && /^error: .* needs Node 20\.19 or newer.*\n$/.test(told.err)
    tell(`Node ${version}`, [['refused', () => (isTold ? { ...told, code: 0, err: '' } : told)]])
  }
  tell('TypeScript', typeChecks(place))
  // What was committed last, not what is in the folder; and not for each Node again.
  if (!values.node) {
    const git = install('git', `git+file://${ROOT}`)
    tell('from git', [
      ['version', () => run([join(git, 'node_modules/.bin/leasehold'), '-V'], git)],
    ])
  }
} finally {
  if (!values.keep) rmSync(folder, { recursive: true, force: true })
}
process.exit(isBroken ? 1 : 0)
