import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Runs the official MCP conformance suite against `/mcp` of a daemon.
 * The suite needs Node 22, which it gets from npm, in a folder of its own that is kept for the next
 * time. It is no part of `npm test`: it needs the network once.
 */

const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url))

const ROUNDS = [
  { version: '0.1.16', flags: ['--spec-version', '2025-11-25'] },
  { version: '0.2.0-alpha.12', flags: ['--requirements', '2026-07-28'] },
]

/** Why a check fails that must fail here, told by the scenario and by what the suite says of it. */
const EXPLAINED: [RegExp, string][] = [
  [/: (?:Failed: |JSON-RPC error: )?(?:MCP error -32602: )?No (?:tool|prompt) \w+$/, 'a fixture'],
  [/: Failed: (?:MCP error -32602: )?Resource not found: test:/, 'a fixture'],
  [/: Not testable: server (?:does not list the diagnostic|exposes no) tool/, 'a fixture'],
  [/: Tool 'json_schema_2020_12_tool' not found/, 'a fixture'],
  [/^input-required-result-(?:multi-round|tampered-state): /, 'a fixture tool that asks for input'],
  [/^completion-complete: .*Method not found$/, 'completion is not offered'],
  [/^(?:logging-set-level|tools-call-with-logging): .*Method not found$/, 'logging is not offered'],
  [/^resources-(?:un)?subscribe: .*Method not found$/, 'needs sessions; requests stand alone here'],
  [/^tasks-/, 'an extension that is not offered, and its fixture tools'],
]

/** The suite sends no token: this adds one, and passes everything else on as it came. */
async function proxyTo(url: string, token: string): Promise<Server> {
  const server = createServer((asked, reply) => {
    const own = `localhost:${(server.address() as AddressInfo).port}`
    const target = new URL(asked.url ?? '/', url)
    const headers = { ...asked.headers, authorization: `Bearer ${token}` }
    if (headers.host === own) headers.host = target.host
    if (headers.origin === `http://${own}`) headers.origin = `http://${target.host}`
    const passed = request(target, { method: asked.method ?? 'GET', headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(reply)
    })
    passed.on('error', () => reply.destroy())
    reply.on('close', () => passed.destroy())
    asked.pipe(passed)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  return server
}

function run(file: string, args: string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(file, args, { cwd, maxBuffer: 2 ** 28 }, (_, out, err) => resolve(out + err))
  })
}

/** The folder that has this version of the suite, and a Node that it runs on. */
async function suite(version: string): Promise<string> {
  const folder = join(tmpdir(), `leasehold-conformance-${version}`)
  if (existsSync(join(folder, 'node_modules/.bin/conformance'))) return folder
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const packages = [`@modelcontextprotocol/conformance@${version}`, 'node@22']
  process.stdout.write(await run('npm', ['install', '--loglevel=error', ...packages], folder))
  return folder
}

interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  errorMessage?: string
}

/** The checks of every scenario, from the folders that the suite left. */
function outcomes(results: string): { name: string; checks: Check[] }[] {
  return readdirSync(results).map((folder) => {
    const name = /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(folder)?.[1] ?? folder
    const text = readFileSync(join(results, folder, 'checks.json'), 'utf8')
    return { name, checks: JSON.parse(text) as Check[] }
  })
}

const say = (text: string) => process.stdout.write(`${text}\n`)

/** Prints what became of a scenario; false when a check failed that nothing explains. */
function report(name: string, checks: Check[]): boolean {
  const failed = checks.filter(({ status }) => status === 'FAILURE')
  // Every answer is also checked against the schema; that alone shows nothing of a scenario.
  const passed = checks.filter((c) => c.status === 'SUCCESS' && c.id !== 'wire-schema-valid')
  const count = `${passed.length} of ${passed.length + failed.length} checks`
  if (failed.length === 0) {
    say(passed.length > 0 ? `  passes       ${name}: ${count}` : `  shows nothing ${name}`)
    return true
  }
  const reasons = failed.map(({ id, errorMessage = '' }) => {
    const why = EXPLAINED.find(([pattern]) => pattern.test(`${name}: ${errorMessage}`))?.[1]
    return why ?? `UNEXPLAINED ${id}: ${errorMessage}`
  })
  say(`  needs        ${name}: ${[...new Set(reasons)].join('; ')} (passes ${count})`)
  return reasons.every((reason) => !reason.startsWith('UNEXPLAINED'))
}

async function round({ version, flags }: (typeof ROUNDS)[number], url: string): Promise<boolean> {
  const folder = await suite(version)
  const bin = join(folder, 'node_modules/.bin')
  const results = join(folder, 'results')
  rmSync(results, { recursive: true, force: true })
  const server = ['server', '--url', `${url}/mcp`, '-o', results, ...flags]
  await run(join(bin, 'node'), [join(bin, 'conformance'), ...server], folder)
  say(`\nconformance ${version} ${flags.join(' ')} (details: ${results})`)
  const ok = outcomes(results).map(({ name, checks }) => report(name, checks))
  return ok.length > 0 && ok.every(Boolean)
}

async function main(): Promise<boolean> {
  const state = mkdtempSync(join(tmpdir(), 'leasehold-conformance-state-'))
  const env = { ...process.env, LEASEHOLD_DIR: state, LEASEHOLD_STORE: '', LEASEHOLD_TOKEN: '' }
  const daemon = spawn(process.execPath, [CLI, '--json', 'serve', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(daemon, 'exit')
  try {
    const [line] = (await once(daemon.stdout, 'data')) as [Buffer]
    const { url } = JSON.parse(String(line)) as { url: string }
    const token = readFileSync(join(state, 'admin.token'), 'utf8').trim()
    const proxy = await proxyTo(url, token)
    const at = `http://localhost:${(proxy.address() as AddressInfo).port}`
    let ok = true
    for (const each of ROUNDS) ok = (await round(each, at)) && ok
    proxy.close()
    proxy.closeAllConnections()
    return ok
  } finally {
    daemon.kill('SIGTERM')
    await ended
    rmSync(state, { recursive: true, force: true })
  }
}

process.exitCode = (await main()) ? 0 : 1
