import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * Packs the project as it would be published, installs it in an empty folder, and uses it there
 * with every Node that we name: `npm run package`. Nothing of the checkout is used but the tarball.
 */
const { values } = parseArgs({
  options: { node: { type: 'string', multiple: true }, keep: { type: 'boolean', default: false } },
})

/** The oldest and the newest of each release, as published in the package of that name. */
const NODES = values.node ?? ['20.19.0', '20', '22', '24.0.0', '24']
/** Too old: each must say so in one line, however little of our syntax it knows. */
const OLD_NODES = values.node ? [] : ['20.18.3', '18', '12']
const ROOT = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'leasehold-package-'))

interface Said {
  code: number | null
  out: string
  err: string
}

function run(command: string[], cwd: string, env: NodeJS.ProcessEnv = {}, input = ''): Said {
  const [file, ...args] = command as [string, ...string[]]
  const { status, signal, stdout, stderr, error } = spawnSync(file, args, {
    ...{ cwd, input, encoding: 'utf8', timeout: 600_000, maxBuffer: 2 ** 26 },
    env: { ...clean(), HOME: join(folder, 'home'), ...env },
  })
  return {
    code: status,
    out: stdout ?? '',
    err: `${stderr ?? ''}${signal ?? error?.message ?? ''}`,
  }
}

/** Without what a developer's shell or npm has set for this project. */
function clean(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(LEASEHOLD|npm_)/i.test(name))
  return Object.fromEntries(kept)
}

function must(command: string[], cwd: string): string {
  const { code, out, err } = run(command, cwd)
  if (code !== 0) throw new Error(`${command.join(' ')} exited with ${code}: ${out}${err}`)
  return out
}

function sizeOf(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

const megabytes = (path: string) => `${(sizeOf(path) / 1e6).toFixed(1)} MB`

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
const isBad = ({ code, err }: Said) => code !== 0 || err !== ''
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
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const flags = ['--noEmit', '--strict', '--target', 'es2023', '--types', 'node']
  return [
    ['node16', 'node16'],
    ['nodenext', 'nodenext'],
    ['bundler', 'preserve'],
  ].map(([resolution, module]) => {
    const how = ['--moduleResolution', resolution!, '--module', module!]
    return [`types ${resolution}`, () => run([tsc, ...flags, ...how, 'use.ts'], place)]
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

try {
  const packed = must(['npm', 'pack', '--silent', '--pack-destination', folder], ROOT)
  const tarball = join(folder, packed.trim().split('\n').at(-1)!)
  const place = emptyProject('installed')
  must(['npm', 'install', '--loglevel=error', tarball, '@types/node@20'], place)
  console.log(`tarball ${megabytes(tarball)}, installed ${megabytes(join(place, 'node_modules'))}`)
  for (const version of NODES) {
    const node = nodeOf(version)
    for (const fresh of [join(place, 'repo'), join(folder, 'home')]) {
      rmSync(fresh, { recursive: true, force: true })
      mkdirSync(fresh)
    }
    must(['git', 'init', '-q'], join(place, 'repo'))
    tell(`Node ${must([node, '--version'], place).trim()}`, checks(node, place))
  }
  for (const version of OLD_NODES) {
    const bin = join(place, 'node_modules/leasehold/bin/leasehold')
    const said = run([nodeOf(version), bin, 'lock', 'list'], place)
    const isTold = said.code === 1 && /^error: .* needs Node 20\.19 or newer.*\n$/.test(said.err)
    tell(`Node ${version}`, [['refused', () => (isTold ? { ...said, code: 0, err: '' } : said)]])
  }
  tell('TypeScript', typeChecks(place))
} finally {
  if (!values.keep) rmSync(folder, { recursive: true, force: true })
}
process.exit(isBroken ? 1 : 0)
