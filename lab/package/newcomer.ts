import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { clean, type Runner } from './run.ts'

/** A process that stands for an agent's: runs its hook as its settings say, and stays alive. */
const AGENT = `
const { spawnSync } = require('node:child_process')
const [command, input] = process.argv.slice(1)
process.stdout.write(spawnSync('sh', ['-c', command], { input, encoding: 'utf8' }).stdout + '\\n')
process.stdin.resume()
`

/** From nothing to an edit that is refused; the seconds that it took. */
export async function timeToRefusal(runner: Runner, folder: string, tarball: string) {
  const began = performance.now()
  const repo = join(folder, 'newcomer')
  mkdirSync(repo)
  runner.must(['git', 'init', '-q'], repo)
  const prefix = join(folder, 'global')
  runner.must(['npm', 'install', '--global', '--loglevel=error', '--prefix', prefix, tarball], repo)
  const PATH = `${join(prefix, 'bin')}:${process.env['PATH']}`
  runner.must(['leasehold', 'init', '--yes', '--client', 'claude'], repo, { PATH })
  const settings = JSON.parse(readFileSync(join(repo, '.claude/settings.json'), 'utf8')) as {
    hooks: { PreToolUse: [{ hooks: [{ command: string }] }] }
  }
  const { command } = settings.hooks.PreToolUse[0].hooks[0]
  const edit = async (session_id: string) => {
    const tool_input = { file_path: join(repo, 'a.ts'), content: 'x' }
    const event = JSON.stringify({ session_id, cwd: repo, tool_name: 'Write', tool_input })
    const env = { ...clean(runner.home), PATH }
    const agent = spawn(process.execPath, ['-e', AGENT, command, event], { cwd: repo, env })
    const [said] = (await once(agent.stdout, 'data')) as [Buffer]
    return { agent, said: String(said) }
  }
  const first = await edit('11111111')
  const second = await edit('22222222')
  const seconds = (performance.now() - began) / 1000
  for (const { agent } of [first, second]) agent.kill()
  const isRight = !first.said.includes('deny') && second.said.includes('"deny"')
  return { seconds, isRight, said: second.said }
}
