import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresUrl } from '../support/postgres.ts'
import { BIN, type Sandbox, sandbox, until } from '../support/processes.ts'
import { isShown, type Step } from './blocks.ts'

/** What the pages call the database of the reader. */
const DATABASE = 'postgres://user:password@db.example/leasehold'

/** What a person decides or answers where nobody sits, and ports that others may have. */
const COMMAND = `#!/bin/sh
case "$1 $*" in
  up\\ *--port*|serve\\ *--port*) ;;
  up\\ *|serve\\ *) set -- "$@" --port 0 ;;
  demo\\ *) set -- "$@" --seconds 1 --agents 3 ;;
  init\\ *--yes*|init\\ *--dry-run*|init\\ *--check*) ;;
  init\\ *) set -- "$@" --yes ;;
esac
exec "${process.execPath}" "${BIN}" "$@"
`

/** A repository as a reader may have one, with the files that pages speak of. */
const FILES = {
  'note.md': 'Run make first.\n',
  'merged.md': '5434\n',
  'prompt.md': 'Fix the login test\n',
  'src/parser/lexer.ts': 'export {}\n',
  'docs/index.md': '# Docs\n',
  'deploy.sh': '#!/bin/sh\necho deployed\n',
  'agent.sh': '#!/bin/sh\necho working\n',
  'edit.json': JSON.stringify({
    session_id: 'b7c1d2e3',
    tool_name: 'Edit',
    tool_input: { file_path: 'src/parser/lexer.ts' },
  }),
}

function makeRepository(web: string): void {
  if (existsSync(web)) return
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(join(web, name, '..'), { recursive: true })
    writeFileSync(join(web, name), text, { mode: 0o755 })
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: web, stdio: 'ignore' })
  git('init', '-q')
  git('config', 'user.name', 'reader')
  git('config', 'user.email', 'reader@example.org')
}

/** Plays the commands of a page in one shell, in order; what does not go as written is returned. */
export async function play(steps: Step[]): Promise<string[]> {
  const place = sandbox()
  mkdirSync(place.path('bin'))
  for (const name of ['leasehold', 'lh']) {
    writeFileSync(join(place.path('bin'), name), COMMAND, { mode: 0o755 })
  }
  const PATH = `${place.path('bin')}:${process.env['PATH']}`
  const env = { PATH, LEASEHOLD_DIR: undefined }
  for (const block of new Set(steps.map(({ at }) => at))) {
    const { machine } = steps.find(({ at }) => at === block)!
    const home = machine === 'a' ? place.home : place.path(machine)
    makeRepository(join(home, 'web'))
    const program = ['bash', '--norc', '-c', scriptOf(place, steps, block)]
    const running = { ...env, HOME: home }
    await place.start([], { program, env: running, cwd: join(home, 'web'), input: '' }).ended
  }
  await endServers(place)
  return steps.flatMap((step, i) => faultOf(place, step, i))
}

/**
 * A block is a shell: its variables last until it ends, and those that it exports for the blocks of
 * that machine that follow. Of each command the exit code and the words are kept.
 */
function scriptOf(place: Sandbox, steps: Step[], block: string): string {
  const { machine } = steps.find(({ at }) => at === block)!
  const exports = place.path(`${machine}.exports`)
  const lines = steps.map(({ at, text }, i) => {
    if (at !== block) return ''
    return `{ ${text.replaceAll(DATABASE, postgresUrl(place.folder))}
} > '${place.path(`out.${i}`)}' 2>&1 < /dev/null
echo $? > '${place.path(`exit.${i}`)}'`
  })
  return `[ -e '${exports}' ] && . '${exports}'
${lines.filter(Boolean).join('\n')}
export -p > '${exports}'`
}

function faultOf(place: Sandbox, { at, text, exit, shown }: Step, i: number): string[] {
  const read = (name: string) => {
    const path = place.path(`${name}.${i}`)
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  }
  const [code, printed] = [read('exit'), read('out')]
  const said = `${at} \`${text}\` exited with ${code || 'nothing'}: ${printed}`
  // The database of tests is quick rather than safe, and every look at it says so.
  if (printed.includes('fsync = off')) return []
  if (code !== String(exit)) return [`${said} (expected ${exit})`]
  return shown === undefined || isShown(shown, printed) ? [] : [`${said} (shown: ${shown})`]
}

/** Servers that a page has started and not stopped. */
async function endServers(place: Sandbox): Promise<void> {
  for (const pid of place.left()) process.kill(pid, 'SIGTERM')
  await until('the servers of the page have ended', () => place.left().length === 0)
}
