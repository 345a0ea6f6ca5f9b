import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { daemonOn } from '../support/daemons.ts'
import { type Sandbox, until } from '../support/processes.ts'
import {
  Claude,
  expectDenied,
  expectSilent,
  LEASEHOLD,
  type Repo,
  repository,
  type Said,
  SESSIONS,
} from './agents.ts'

const TERMINAL = fileURLToPath(new URL('../e2e/terminal.py', import.meta.url))

async function holders(place: Sandbox): Promise<string[]> {
  const { items } = await place.ok(['reserve', 'list'])
  return items.map(({ path, holder }: Record<string, string>) => `${path} ${holder}`).toSorted()
}

describe('a name on standard input', () => {
  test('counts for the process that was seen with it, and for no other', async () => {
    const { place, repo, a, b } = repository()
    expectSilent(await b.edit('b.ts'))
    expectSilent(await a.edit('a.ts'))
    const forged = (event: string, env = {}) => {
      const hook_event_name = event === 'session-end' ? 'SessionEnd' : 'PreToolUse'
      const edit = { file_path: join(repo, 'b.ts'), old_string: 'a', new_string: 'b' }
      const input = {
        ...{ session_id: b.session, hook_event_name, cwd: repo },
        ...{ tool_name: 'Edit', tool_input: edit },
      }
      return a.hook('claude', event, input, env)
    }
    expect(expectDenied(await forged('pre-tool-use'))).toContain(`reserved by ${b.id}`)
    const named = { LEASEHOLD_AGENT: b.id, CLAUDE_CODE_SESSION_ID: b.session }
    expect(expectDenied(await forged('pre-tool-use', named))).toContain(`reserved by ${b.id}`)
    expectSilent(await forged('session-end'))
    // It has ended its own conversation, whatever it called it.
    expect(await holders(place)).toEqual([`b.ts ${b.id}`])
    const commit = `git add b.ts; LEASEHOLD_AGENT=${b.id} ${LEASEHOLD} hook git pre-commit`
    writeFileSync(join(repo, 'b.ts'), 'changed\n')
    expectSilent(await a.edit('a.ts'))
    expect(await a.sh(commit)).toMatchObject({ code: 1 })
    // A conversation that goes on in another process is the same, when the first one has ended.
    await b.die()
    const again = new Claude(place, repo, SESSIONS.b)
    expectSilent(await again.edit('b.ts'))
    expect(await holders(place)).toEqual([`a.ts ${a.id}`, `b.ts ${b.id}`])
  })

  test('makes no agent of the terminal in which a person types it', async () => {
    const { place, repo } = repository()
    const program = ['python3', TERMINAL, '24', '200', 'sh']
    const shell = place.start([], { program, cwd: repo })
    onTestFinished(async () => {
      shell.kill('SIGKILL')
      await shell.ended
    })
    const edit = { tool_name: 'Edit', tool_input: { file_path: join(repo, 'a.ts') } }
    const input = JSON.stringify({ session_id: SESSIONS.a, cwd: repo, ...edit })
    shell.child.stdin!.write(`echo '${input}' | ${LEASEHOLD} hook claude pre-tool-use\n`)
    shell.child.stdin!.write(`${LEASEHOLD} --json lock acquire deploy; exit\n`)
    const [, holder] = await shell.said(/"holder":"([^"]+)"/)
    expect(holder).toMatch(/^cli:/)
    expect(existsSync(join(place.state, 'sessions'))).toBe(false)
  })
})

/** Lets a command go: it runs when what has started it has ended, with nothing of what that had. */
async function detached(by: Claude, { place }: Repo, how: string, args: string): Promise<Said> {
  const name = place.path(`said-${Math.random()}`)
  const kept = ['PATH', 'HOME', 'LEASEHOLD_DIR', 'LEASEHOLD_TRUST_CONFIG']
    .map((each) => `${each}="$${each}"`)
    .join(' ')
  const orphan = `while kill -0 $2 2>/dev/null; do sleep 0.02; done
    ${LEASEHOLD} ${args} > ${name}.out 2> ${name}.err; echo $? > ${name}.code`
  writeFileSync(`${name}.sh`, orphan)
  const start = `env -i ${kept} ${how} sh ${name}.sh x $$`
  await by.sh(`(${start} < /dev/null > /dev/null 2>&1 &)`)
  const read = (part: string) => readFileSync(`${name}.${part}`, 'utf8')
  const code = await until(`${args} is done`, () => existsSync(`${name}.code`) && read('code'))
  return { code: Number(code), out: read('out'), err: read('err') }
}

describe.each(['setsid', 'nohup'])('what an agent lets go by %s', (how) => {
  test('is that agent’s as long as it lives, and then a person’s', async () => {
    const repo = repository()
    const { place, a, b } = repo
    expectSilent(await a.edit('a.ts'))
    const { out } = await detached(a, repo, how, '--json lock acquire deploy')
    expect(JSON.parse(out).holder).toBe(a.id)
    const approve = await detached(a, repo, how, 'config approve --yes')
    expect(approve.err).toContain(`config approve is for a person, and not for ${a.id}`)
    expect(approve.code).toBe(4)
    // Of several nobody can tell which: it is none of them by its own word.
    expectSilent(await b.edit('b.ts'))
    const other = await detached(a, repo, how, `--agent ${b.id} lock acquire x`)
    expect(other.err).toContain(`cannot act as ${b.id}`)
    expect((await detached(a, repo, how, 'lock force-release deploy')).code).toBe(4)
    // A person beside them is asked nothing of all that.
    await place.ok(['lock', 'force-release', 'deploy'])
  })
})

test('a pid namespace of its own makes a command of an agent nobody else’s', async ({ skip }) => {
  const repo = repository()
  const { a } = repo
  const unshare = 'unshare --pid --fork --mount-proc'
  const bare = 'PATH="$PATH" HOME="$HOME" LEASEHOLD_DIR="$LEASEHOLD_DIR"'
  // reason: a pid namespace of one's own needs root
  if ((await a.sh(`${unshare} true`)).code !== 0) skip()
  expectSilent(await a.edit('a.ts'))
  const inside = (args: string) => a.sh(`env -i ${bare} ${unshare} ${LEASEHOLD} ${args}`)
  expect((await inside('lock force-release x')).err).toContain(`not for ${a.id} to do`)
  expect((await inside('--agent claude:bbbbbbbb lock acquire x')).err).toContain('cannot act as')
})

test('the secret of this login’s own command line makes no admin of an agent', async () => {
  const repo = repository()
  const { place, a, b } = repo
  await daemonOn(place)
  expectSilent(await a.edit('a.ts'))
  expectSilent(await b.edit('b.ts'))
  const asAdmin = (args: string) =>
    a.sh(`LEASEHOLD_TOKEN=$(cat "$LEASEHOLD_DIR/admin.token") ${LEASEHOLD} ${args}`)
  for (const args of ['lock force-release x', 'token create --role admin', 'up --link']) {
    expect((await asAdmin(args)).err, args).toContain(`is for a person, and not for ${a.id}`)
  }
  expect((await asAdmin(`--agent ${b.id} reserve release`)).err).toContain('cannot act as')
  expect(await holders(place)).toContain(`b.ts ${b.id}`)
})

describe('what a process of this login can do all the same', () => {
  test('leaves what the page says: an event, under another name', async () => {
    const repo = repository()
    const { place, a } = repo
    const { url } = await daemonOn(place)
    expectSilent(await a.edit('a.ts'))
    const freed = async () => {
      const { items } = await place.ok(['event', 'list', '--type', 'lease.force_released'])
      return items.map(({ lock, agent }: Record<string, string>) => `${lock} ${agent}`)
    }
    for (const name of ['by-secret', 'by-terminal']) {
      await place.ok(['lock', 'acquire', name, '--agent', 'bob'])
    }
    const asked = `fetch('${url}/v1/lock.force_release', { method: 'POST', headers: {
      authorization: 'Bearer ' + require('fs').readFileSync(process.argv[1], 'utf8').trim(),
      'content-type': 'application/json' }, body: '{"name":"by-secret"}' })`
    writeFileSync(place.path('ask.js'), asked)
    const secret = join(place.state, 'admin.token')
    await a.sh(`${process.execPath} -e "$(cat ${place.path('ask.js')})" ${secret}`)
    expect(await freed()).toEqual(['by-secret admin'])
    const free = `${LEASEHOLD} lock force-release by-terminal`
    const orphan = `while kill -0 $1 2>/dev/null; do sleep 0.02; done
      python3 ${TERMINAL} 24 80 ${free}; echo $? > ${place.path('freed')}`
    writeFileSync(place.path('free.sh'), orphan)
    const start = `setsid sh ${place.path('free.sh')} $$ < /dev/null > /dev/null 2>&1`
    await a.sh(`(${start} &)`)
    await until('it has ended', () => existsSync(place.path('freed')))
    expect((await freed()).toSorted()).toEqual([
      'by-secret admin',
      expect.stringMatching(/^by-terminal (?:admin|cli:)/),
    ])
  })

  test('a name that another took before it was seen is refused to its owner', async () => {
    const { repo, a, b } = repository()
    const edit = { file_path: join(repo, 'b.ts'), old_string: 'a', new_string: 'b' }
    const input = { session_id: b.session, cwd: repo, tool_name: 'Edit', tool_input: edit }
    const hook_event_name = 'PreToolUse'
    expectSilent(await a.hook('claude', 'pre-tool-use', { ...input, hook_event_name }))
    expect(expectDenied(await b.edit('b.ts'))).toContain(`b.ts is reserved by ${b.id}`)
  })
})

test('an agent does not say for a server that nothing has to be approved', async () => {
  const { place, a } = repository()
  place.env['LEASEHOLD_TRUST_CONFIG'] = undefined
  const plain = new Claude(place, place.path('repo'), SESSIONS.b)
  expectSilent(await a.edit('a.ts'))
  expectSilent(await plain.edit('b.ts'))
  const elsewhere = `XDG_STATE_HOME=${place.path('mine')}`
  for (const said of ['LEASEHOLD_TRUST_CONFIG=yes', elsewhere, `HOME=${place.path('mine')}`]) {
    const up = await plain.sh(`${said} ${LEASEHOLD} up`)
    expect(up.err, said).toContain('is for a person')
  }
  await expect(place.ok(['down'])).resolves.toMatchObject({ stopped: false })
})

test('a run is a run whatever its commands leave out', async () => {
  const all = dispatching({ agents: { mine: script('begin; sh "$OUT/mine.sh"') } })
  const { place } = all
  const state = place.path('approvals')
  place.env['XDG_STATE_HOME'] = state
  mkdirSync(state)
  const here = `PATH="$PATH" HOME="$HOME" XDG_STATE_HOME=${state} LEASEHOLD_DIR=${place.state}`
  const tries = [
    `LEASEHOLD_DIR=${place.state} env -u LEASEHOLD_TOKEN -u LEASEHOLD_RUN`,
    `env -i ${here}`,
    `env -i ${here} setsid --wait`,
  ]
  const approve = (before: string) =>
    `${before} ${LEASEHOLD} config approve --yes >> "$OUT/said" 2>&1 && echo PAST >> "$OUT/said"`
  const lost = `while kill -0 $1 2>/dev/null; do sleep 0.02; done
    OUT=$2; ${approve('')}; echo done > "$OUT/lost"`
  writeFileSync(join(all.out, 'lost.sh'), lost)
  const body = `${tries.map(approve).join('\n')}
    sh -c 'env -i ${here} setsid sh "$OUT/lost.sh" $$ "$OUT" < /dev/null > /dev/null 2>&1 &'
    until_there lost; echo done > "$OUT/done"`
  writeFileSync(
    join(all.out, 'mine.sh'),
    `until_there() { while [ ! -e "$OUT/$1" ]; do sleep 0.05; done; }\n${body}`,
  )
  await all.serve()
  await all.add('ada-1', 'ada')
  await until('all was tried', () => all.read('done'))
  const said = all.read('said')
  expect(said).not.toContain('PAST')
  expect(said.match(/error: /g), said).toHaveLength(4)
  expect(existsSync(join(state, 'leasehold/approved'))).toBe(false)
})
