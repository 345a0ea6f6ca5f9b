import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { argvOf, type Dispatching, dispatching, environ } from '../support/dispatching.ts'
import type { Json } from '../doors/serving.ts'
import { ROUNDS, until } from '../support/processes.ts'

/** Prompts that mean something to a shell, an option parser, a terminal or a template. */
const CORPUS: Record<string, string> = {
  plain: 'Mend the roof',
  substitution: '$(touch PWNED) `touch PWNED` ${HOME} $PATH $((1+1))',
  separators: 'x; rm -rf "$HOME"; touch PWNED & touch PWNED | tee PWNED && touch PWNED > PWNED',
  quotes: `'"'"' " \\" \\' '; touch PWNED; '`,
  option: '--output=PWNED',
  short_option: '-c',
  double_dash: '--',
  evaluated: '-e require("fs").writeFileSync("PWNED","")',
  newlines: 'first\nsecond\n\n--third\n\ttabbed\n',
  carriage: 'first\r\nsecond\rthird\r\n',
  blank: '   \n  leading and trailing  \n ',
  unicode: 'Größe 日本語 🧑‍🚀 é é \u200d\ufeff',
  right_to_left: '\u202egnp.exe \u2066abc\u2069 שלום',
  escapes: '\u001b[2J\u001b]0;title\u0007\u001b[31mred\u001b[0m \u0008\u007f',
  template: '{prompt_file} {prompt} %s %n ${LEASEHOLD_TOKEN} {{x}}',
  environment: 'LEASEHOLD_TASK=1 PATH=/evil IFS=x LD_PRELOAD=/evil.so',
  json: '","env":{"PATH":"/evil"},"argv":["touch","PWNED"],"x":"',
  long: 'x'.repeat(1024 * 1024),
}

/**
 * A file keeps what is in it, and no shell, option or template is near. So what a prompt in a file
 * may do is tried with these; `npm run faults` has all of them both ways.
 */
const BY_FILE = new Set([
  'substitution',
  'option',
  'newlines',
  'carriage',
  'unicode',
  'template',
  'long',
])

function triedBy(by: string): [string, string][] {
  const isFew = ROUNDS === 1 && (by === 'file' || by === 'named')
  return Object.entries(CORPUS).filter(([id]) => {
    return isFew ? BY_FILE.has(id) : by !== 'argument' || id !== 'long'
  })
}

/** Writes down exactly what it was started with: as the kernel has it, and what it could read. */
const FIXTURE = `
const fs = require('node:fs')
const list = (name) => fs.readFileSync('/proc/self/' + name, 'latin1').split('\\0').slice(0, -1)
const stdin = fs.readFileSync(0).toString('base64')
const given = list('cmdline').find((each) => each.endsWith('prompt.txt'))
const path = given && given.replace(/^--input=/, '')
const file = path && fs.readFileSync(path).toString('base64')
const mode = path && fs.statSync(path).mode & 0o777
const seen = { argv: list('cmdline'), env: list('environ'), stdin, file, mode, cwd: process.cwd() }
const out = process.env.OUT + '/' + process.env.LEASEHOLD_TASK
fs.writeFileSync(out + '.new', JSON.stringify(seen))
fs.renameSync(out + '.new', out)
`

const SECRET = 'wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY'
const OURS = { AWS_SECRET_ACCESS_KEY: SECRET, GITHUB_TOKEN: 'passed', EDITOR: 'vi', LC_ALL: 'C' }
/** Of the dispatcher's own, and nothing else of it. */
const ALLOWED = ['HOME', 'LC_ALL', 'PATH']
const RUN = ['AGENT', 'FENCE', 'LOCK', 'MARK', 'RUN', 'TASK', 'TOKEN', 'URL']

const bytes = (text: string) => Buffer.from(text).toString('base64')
const latin = (text: string) => Buffer.from(text).toString('latin1')

async function injecting() {
  const all = dispatching()
  const fixture = all.place.path('fixture.cjs')
  writeFileSync(fixture, FIXTURE)
  const command = [process.execPath, fixture, 'a b', '$HOME', '--', '--flag=*']
  const env = { OUT: all.out, GITHUB_TOKEN: true, MODE: 'fast' }
  all.configure({
    agents: {
      stdin: { command, env },
      file: { command, env, prompt: 'file' },
      named: { command: [...command, '--input={prompt_file}'], env, prompt: 'file' },
      argument: { command, env, prompt: 'argument' },
    },
    per_user_serialization: { enabled: false },
  })
  await all.serve(OURS)
  return { all, command }
}

function expectClean(all: Dispatching, seen: Json): void {
  const names = (seen.env as string[]).map((each) => each.split('=')[0]!).toSorted()
  const ours = RUN.map((name) => `LEASEHOLD_${name}`)
  const configured = ['GITHUB_TOKEN', 'MODE', 'OUT']
  // PWD is the gate's doing: it says where the agent is, which that knows anyway.
  expect(names).toEqual([...ALLOWED, ...ours, ...configured, 'PWD'].toSorted())
  expect(seen.env).toContain(`PWD=${all.place.folder}`)
  expect(seen.env).toContain('GITHUB_TOKEN=passed')
  expect(seen.env).toContain('MODE=fast')
  expect(seen.env).toContain(`PATH=${all.place.env['PATH']}`)
  expect(seen.cwd).toBe(all.place.folder)
}

describe.each(['stdin', 'file', 'named', 'argument'])('a prompt for an agent by %s', (by) => {
  test('arrives byte for byte, and changes neither its arguments nor its environment', async () => {
    const { all, command } = await injecting()
    const prompts = triedBy(by)
    for (const [id, prompt] of prompts) await all.add(id, 'ada', { prompt, agent_command: by })
    await all.idle()
    for (const [id, prompt] of prompts) {
      expect(await all.task(id), id).toMatchObject({ status: 'done', body: prompt })
      const seen = JSON.parse(all.read(id))
      const file = join(all.place.state, 'runs', `${id}.1`, 'prompt.txt')
      const argv = {
        stdin: command,
        file: [...command, '--', file],
        named: [...command, `--input=${file}`],
        argument: [...command, '--', latin(prompt)],
      }[by]
      expect(seen.argv, id).toEqual(argv)
      expectClean(all, seen)
      expect(seen.stdin === bytes(by === 'stdin' ? prompt : ''), `stdin of ${id}`).toBe(true)
      const isFile = by === 'file' || by === 'named'
      expect(seen.file === (isFile ? bytes(prompt) : undefined), `file of ${id}`).toBe(true)
      if (isFile) expect(seen.mode).toBe(0o600)
    }
    const found = readdirSync(all.place.folder, { recursive: true }).map(String)
    expect(found.filter((name) => name.includes('PWNED'))).toEqual([])
  })
})

describe('what cannot be passed on', () => {
  test('a NUL character is refused at the door', async () => {
    const { all } = await injecting()
    const input = { prompt: 'a\0b', project: 'web', user: 'ada' }
    const reply = await all.daemon.post('queue.add', input)
    expect(reply).toMatchObject({ status: 400, json: { error: { code: 'invalid' } } })
    const args = ['queue', 'add', '-', '--project', 'web', '--user', 'ada']
    await all.place.refused(args, 'invalid', 2, { input: 'a\0b' })
    expect(await all.idle()).toMatchObject({ pending: { total: 0 } })
  })

  test('a megabyte as an argument fails the task, with what to do', async () => {
    const { all } = await injecting()
    await all.add('long', 'ada', { prompt: CORPUS['long'], agent_command: 'argument' })
    await all.become('long', 'failed')
    const [run] = (await all.daemon.ok('run.list', { task_id: 'long' })).items
    expect(run.outcome).toMatch(/^could not start: The prompt has 1048576 bytes; as an argument/)
    expect(await all.idle()).toMatchObject({ user_locks: { active: 0 } })
  })

  test('a prompt on standard input of the command line arrives as it is', async () => {
    const { all } = await injecting()
    const args = ['queue', 'add', '-', '--id', 'cli', '--project', 'web', '--user', 'ada']
    await all.place.ok(args, { input: CORPUS['carriage']! })
    await all.become('cli', 'done')
    expect(JSON.parse(all.read('cli')).stdin).toBe(bytes(CORPUS['carriage']!))
  })

  test('names of users, projects and ids reach no path or argument unchecked', async () => {
    const { all, command } = await injecting()
    for (const id of ['../../PWNED', 'a/b', '..']) {
      const input = { id, prompt: 'x', project: 'web', user: '$(touch PWNED)' }
      const reply = await all.daemon.post('queue.add', input)
      if (reply.status === 200) await all.idle()
      else expect(reply.json.error.code).toBe('invalid')
    }
    await all.add('plain', '--user=$(touch PWNED)', { title: '`touch PWNED`' })
    await all.become('plain', 'done')
    expect(JSON.parse(all.read('plain')).argv).toEqual(command)
    expect(existsSync(join(all.place.folder, 'PWNED'))).toBe(false)
    const runs = readdirSync(join(all.place.state, 'runs'))
    expect(runs.every((name) => /^[\w.-]+$/.test(name) && !name.startsWith('.'))).toBe(true)
  })
})

/** The files below a folder that hold this text. Files come and go while it looks. */
function filesWith(text: string, folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => {
      try {
        return readFileSync(path).includes(text)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (['ENOENT', 'EISDIR', 'ENXIO'].includes(code ?? '')) return false
        throw error
      }
    })
}

describe('secrets', () => {
  test('the token of a run is in its environment only; ours are in no process of it', async () => {
    const all = dispatching({
      agents: {
        held: {
          command: [
            '/bin/sh',
            '-c',
            'env > "$OUT/env"; while [ ! -e "$OUT/go" ]; do sleep 0.02; done',
          ],
        },
      },
    })
    await all.serve(OURS)
    await all.add('ada-1', 'ada')
    const env = await until('it runs', () => /^LEASEHOLD_TOKEN=(.+)$/m.exec(all.read('env')))
    const token = env[1]!
    expect(token).toHaveLength(43)
    const look = () => {
      const pids = readdirSync('/proc')
        .map(Number)
        .filter((pid) => pid > 0)
      const shown = pids.filter((pid) => argvOf(pid).includes(token))
      return { shown, kept: filesWith(token, all.place.state) }
    }
    expect(look()).toEqual({ shown: [], kept: [] })
    const [runner] = all.runners()
    expect(environ(runner!)).not.toContain(token)
    expect(environ(runner!)).not.toContain(SECRET)
    expect(environ(runner!)).not.toContain('EDITOR')
    expect(all.read('env')).not.toContain(SECRET)
    const carriers = all.processes().filter((pid) => environ(pid).includes(SECRET))
    expect(carriers).toEqual([all.daemon.running.pid])
    expect(filesWith(SECRET, all.place.state)).toEqual([])
    all.write('go')
    await all.become('ada-1', 'done')
    expect(look()).toEqual({ shown: [], kept: [] })
    await all.daemon.stop()
    expect(look()).toEqual({ shown: [], kept: [] })
  })
})
