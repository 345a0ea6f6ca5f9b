import { existsSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isAlive, TEST_CLI, until } from '../support/processes.ts'
import { DEAF, FOREVER, runners, type Runners } from './runner_agent.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777
const rights = (of: Runners, path: string) => modeOf(join(of.place.state, path))

/** What a link of /proc leads to; the folder that is being read is gone by now. */
function linkOf(path: string): string | undefined {
  return existsSync(path) ? readlinkSync(path) : undefined
}

describe('a run ends as its command does', () => {
  test('exit 0: the task is done, and lock and limits are back', async () => {
    const all = await runners()
    const { run, task, meta, spec } = await all.through('echo hello; echo oops >&2')
    expect(run).toMatchObject({ status: 'completed', exit_code: 0, signal: null })
    expect(task).toMatchObject({ status: 'done', run_id: null, lock_fence: null })
    expect(all.output(spec).split('\n').toSorted()).toEqual(['', 'hello', 'oops'])
    expect(meta).toMatchObject({ id: run.id, status: 'completed', user: 'ada', project: 'web' })
    expect(meta).toMatchObject({ exit_code: 0, reason: null, lock_released: true, title: 'Work' })
    expect(meta).toMatchObject({ pid: run.pid, lock_id: `task:${task.id}#${spec.fence}` })
    expect(meta!.ended_at).toBe(run.ended_at)
    const folder = `runs/${run.id}`
    expect(rights(all, folder)).toBe(0o700)
    for (const name of ['meta.json', 'output.log']) {
      expect(rights(all, `${folder}/${name}`), name).toBe(0o600)
    }
    const share = await all.store.read((view) => view.get('share', 'ada'))
    expect(share).toMatchObject({ running: [] })
  })

  test('any other exit, or a signal: failed, and the reason is on record', async () => {
    const all = await runners()
    const failed = await all.through('exit 7')
    expect(failed.run).toMatchObject({ status: 'failed', exit_code: 7, outcome: 'exit 7' })
    expect(failed.task).toMatchObject({ status: 'failed' })
    expect(failed.meta).toMatchObject({ status: 'failed', exit_code: 7, signal: null })
    const killed = await all.through('kill -9 $$')
    expect(killed.run).toMatchObject({ status: 'failed', exit_code: null, signal: 'SIGKILL' })
    expect(killed.meta).toMatchObject({ exit_code: null, signal: 'SIGKILL' })
  })

  test('while retries last it goes back to the queue', async () => {
    const all = await runners()
    const first = await all.through('exit 1', {}, { retries: 1 })
    expect(first.task).toMatchObject({ status: 'todo' })
    const again = await all.claimNext()
    expect(again.run.id).toBe(`${first.task.id}.2`)
    expect(await all.start(all.spec(again, 'exit 1')).ended).toMatchObject({ code: 0 })
    expect((await all.after(again)).task).toMatchObject({ status: 'failed' })
  })

  test('an agent that moved the task itself has decided', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const { run, fence, task } = claimed
    const cli = `"${process.execPath}" "${TEST_CLI}" task status ${task.id} review`
    const env = { LEASEHOLD_LOCK: `task:${task.id}`, LEASEHOLD_FENCE: String(fence) }
    const spec = all.spec(claimed, `${cli}; exit 3`)
    Object.assign(spec.env, env, all.at, { LEASEHOLD_AGENT: run.agent })
    await all.start(spec).ended
    const after = await all.after(claimed)
    expect(after.task, all.output(spec)).toMatchObject({ status: 'review' })
    expect(after.run).toMatchObject({ status: 'completed', exit_code: 3 })
    expect(all.meta(spec)).toMatchObject({ status: 'completed', exit_code: 3 })
  })

  for (const [what, more] of [
    ['a program that is not there', { argv: ['no-such-program'] }],
    ['a file that is no program', { argv: ['/etc/passwd'] }],
    ['a folder that is not there', { cwd: '/no/such/folder' }],
    ['a NUL in an argument', { argv: ['echo', 'a\0b'] }],
    ['arguments beyond all bounds', { argv: ['echo', 'x'.repeat(3_000_000)] }],
    ['what would be an option of the gate', { argv: ['-c', 'true'] }],
  ] as const) {
    test(`${what}: it could not start, which is not an exit code`, async () => {
      const all = await runners()
      const { run, task, meta } = await all.through('', {
        ...more,
        argv: [...(more.argv ?? ['true'])],
      })
      expect(run.outcome).toMatch(/^could not start: ./)
      expect(run).toMatchObject({ status: 'failed', exit_code: null, begun_at: null })
      expect(task.status).toBe('failed')
      expect(meta).toMatchObject({ reason: run.outcome, pid: null, started_at: null })
    })
  }

  test('a command that exits with 127 itself did run', async () => {
    const all = await runners()
    const { run, meta } = await all.through('exit 127')
    expect(run).toMatchObject({ status: 'failed', exit_code: 127, outcome: 'exit 127' })
    expect(meta).toMatchObject({ exit_code: 127, reason: null })
  })
})

describe('the prompt reaches the command', () => {
  const PROMPT = `$(touch owned) "quoted" ; ü\n${'x'.repeat(200_000)}\n`

  test('on standard input', async () => {
    const all = await runners()
    const { spec } = await all.through('cat', { stdin: PROMPT, log_bytes_max: 1e6 })
    expect(all.output(spec)).toBe(PROMPT)
    expect(existsSync(all.place.path('owned'))).toBe(false)
  })

  test('in a file for this login only', async () => {
    const all = await runners()
    const prompt_file = all.place.path('prompt.md')
    const more = { prompt: PROMPT, prompt_file, argv: ['cat', '--', prompt_file] }
    const { spec } = await all.through('', { ...more, log_bytes_max: 1e6 })
    expect(all.output(spec)).toBe(PROMPT)
    expect(modeOf(prompt_file)).toBe(0o600)
  })

  test('as an argument', async () => {
    const all = await runners()
    const { spec } = await all.through('', { argv: ['printf', '%s', '--', '$(id) -n'] })
    expect(all.output(spec)).toBe('--$(id) -n')
  })

  test('a command that closes its input, or never reads it, is well', async () => {
    const all = await runners()
    const { run } = await all.through('exec 0<&-; echo fine', { stdin: 'x'.repeat(5_000_000) })
    expect(run).toMatchObject({ status: 'completed', exit_code: 0 })
    const { spec } = await all.through('cat; echo end', { stdin: null })
    expect(all.output(spec)).toBe('end\n')
  })

  test('and nothing else does: neither our environment nor our files', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const spec = all.spec(claimed, 'env; ls -l /proc/self/fd')
    const secrets = { SECRET: 'hush', LEASEHOLD_TOKEN: 'lht', LEASEHOLD_STOP_AT: 'nowhere' }
    await all.start(spec, secrets).ended
    const output = all.output(spec)
    expect(output).toContain(`LEASEHOLD_RUN=${claimed.run.id}\n`)
    expect(output).toMatch(/^LEASEHOLD_MARK=[\w-]+$/m)
    expect(output).not.toMatch(/hush|lht|STOP_AT/)
    const names = output.match(/^\w+(?==)/gm)!.filter((name) => !/^(PWD|_|SHLVL)$/.test(name))
    expect(names.toSorted()).toEqual(['LEASEHOLD_MARK', ...Object.keys(spec.env)].toSorted())
    // Its own three and what ls opened, besides what this whole test was started with.
    const given = new Set(readdirSync('/proc/self/fd').map((fd) => linkOf(`/proc/self/fd/${fd}`)))
    const open = [...output.matchAll(/ -> (.*)/g)].filter(([, to]) => !given.has(to))
    expect(open, output).toHaveLength(4)
  })
})

describe('a runner ends what must not go on', () => {
  test('over its time limit, deaf, with a grandchild in another session', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const spec = all.spec(claimed, `trap "" TERM; ${DEAF}\necho $$ > self; ${FOREVER}`, {
      time_limit_ms: 1_000,
    })
    const running = all.start(spec)
    const pids = [await all.pidIn('deaf'), await all.pidIn('self')]
    const begun = Date.parse(all.meta(spec)!.started_at!)
    await until('all are gone', () => !pids.some(isAlive))
    expect(Date.now() - begun).toBeLessThan(1_000 + spec.grace_ms + 1_000)
    await running.ended
    const { run, task } = await all.after(claimed)
    expect(run).toMatchObject({ status: 'failed', outcome: 'time limit of 1 s', signal: 'SIGKILL' })
    expect(task.status).toBe('failed')
    expect(all.meta(spec)).toMatchObject({ reason: 'time limit of 1 s', time_limit_seconds: 1 })
  })

  test('silent for too long; one that talks goes on', async () => {
    const all = await runners()
    // What talks does so four times as often as it has to, and for longer than it may be silent.
    const talks = 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done'
    const { run, spec } = await all.through(`${talks}; ${FOREVER}`, { silence_ms: 1_600 })
    expect(run).toMatchObject({ status: 'failed', outcome: 'silent for 1.6 s' })
    expect(all.output(spec)).toBe('1\n2\n3\n4\n5\n6\n')
  })

  test('what a command leaves behind, though it ended well', async () => {
    const all = await runners()
    const { run } = await all.through(`${DEAF}\necho bye`)
    expect(isAlive(await all.pidIn('deaf'))).toBe(false)
    expect(run).toMatchObject({ status: 'completed', exit_code: 0 })
  })

  test('told to stop: the command hears TERM, may clean up, and the run says why', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const body = `trap 'echo cleaning; exit 0' TERM; echo $$ > self; ${FOREVER}`
    const spec = all.spec(claimed, body, { grace_ms: 10_000 })
    const running = all.start(spec)
    await all.pidIn('self')
    running.kill('SIGHUP')
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(all.output(spec)).toMatch(/^cleaning$/m)
    const { run } = await all.after(claimed)
    expect(run).toMatchObject({ status: 'failed', outcome: 'runner was told to stop' })
  })

  test('whose whole state was removed: nobody is left to tell, so the runner ends', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const running = all.start(all.spec(claimed, FOREVER))
    await until('it runs', async () => (await all.after(claimed)).run.begun_at)
    await all.store.close()
    rmSync(all.place.state, { recursive: true })
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(existsSync(all.place.state)).toBe(false)
  })

  test('told to stop before the gate is open: nothing runs', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const spec = all.spec(claimed, 'touch ran')
    const running = await all.stoppedAt('runner:gated', spec)
    running.kill('SIGTERM')
    running.kill('SIGCONT')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect((await all.after(claimed)).run).toMatchObject({ outcome: 'runner was told to stop' })
    expect(existsSync(all.place.path('ran'))).toBe(false)
  })

  test('its lease was taken back: the command goes, and meta.json has the truth', async () => {
    const all = await runners()
    const claimed = await all.claim({}, 9_000)
    const spec = all.spec(claimed, `${DEAF}\necho $$ > self; ${FOREVER}`, { ttl_ms: 9_000 })
    const running = all.start(spec)
    const pids = [await all.pidIn('deaf'), await all.pidIn('self')]
    await all.place.ok(['--force', 'queue', 'cancel', claimed.task.id])
    expect(pids.some(isAlive)).toBe(false)
    expect(await running.ended).toMatchObject({ code: 0 })
    expect((await all.after(claimed)).run).toMatchObject({ status: 'cancelled' })
    expect(all.meta(spec)).toMatchObject({ status: 'cancelled', lock_released: true })
  })

  test('renewed for as long as the command runs, beyond the TTL', async () => {
    const all = await runners()
    // A runner has to begin within it, also on a busy machine.
    const ttl_ms = 4_000
    const claimed = await all.claim({}, ttl_ms)
    const body = 'echo $$ > self; while [ ! -e over ]; do sleep 0.05; done'
    const spec = all.spec(claimed, body, { ttl_ms })
    const running = all.start(spec)
    const pid = await all.pidIn('self')
    const begun = performance.now()
    await until('the TTL has passed', () => performance.now() - begun > ttl_ms)
    expect(isAlive(pid)).toBe(true)
    writeFileSync(all.place.path('over'), '')
    await running.ended
    expect((await all.after(claimed)).run).toMatchObject({ status: 'completed' })
  })
})
