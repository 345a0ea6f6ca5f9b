import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Exposition } from '../../src/doors/http/exposition.ts'
import { parseExposition } from './exposition.ts'
import { send, servingPlace, startDaemon } from './serving.ts'

const GRAFANA = new URL('../../docs/grafana.json', import.meta.url)

const FALLING = `# HELP h H.
# TYPE h histogram
h_bucket{le="1"} 2
h_bucket{le="+Inf"} 1
h_sum 1
h_count 1
`

describe('/metrics', () => {
  test('is valid, agrees with the events, and is for those who have a token', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['secret-lock'], agent: 'ada' })
    expect(
      (await daemon.post('lock.acquire', { names: ['secret-lock'], agent: 'bob' })).status,
    ).toBe(409)
    const waiting = daemon.ok('lock.acquire', {
      names: ['secret-lock'],
      agent: 'bob',
      wait_seconds: 60,
    })
    await daemon.ok('task.create', { title: 'Mend it', id: 'secret-task', user: 'alice' })
    await daemon.ok('task.claim', { id: 'secret-task', agent: 'ada' })
    await daemon.ok('task.status', { id: 'secret-task', status: 'done', agent: 'ada' })
    await daemon.ok('queue.add', {
      prompt: 'later',
      project: 'nowhere',
      user: 'alice',
      priority: 9,
    })
    await daemon.ok('lock.force_release', { name: 'secret-lock' })
    await waiting
    await daemon.post('lock.renew', { name: 'secret-lock', agent: 'ada', fence: 1 })

    expect((await send(daemon.url, '/metrics')).status).toBe(401)
    const token = await daemon.token('viewer')
    const { status, text, headers } = await send(daemon.url, '/metrics', { token })
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const families = parseExposition(text)
    const of = (name: string, labels: object = {}) => {
      const samples = families.get(name.replace(/_(?:count|bucket|sum)$/, ''))?.samples ?? []
      return samples.find((each) => each.name === name && hasAll(each.labels, labels))?.value
    }
    const counted = families.get('leasehold_events_total')!.samples
    const events = (await place.ok(['db', 'check'])).events as number
    expect(counted.reduce((sum, { value }) => sum + value, 0)).toBe(events)
    expect(of('leasehold_refusals_total', { code: 'held' })).toBe(1)
    expect(of('leasehold_lock_waits_total')).toBe(1)
    expect(of('leasehold_lock_wait_seconds_count')).toBe(1)
    expect(of('leasehold_stale_writes_total')).toBe(1)
    expect(of('leasehold_task_moves_total', { to: 'done' })).toBe(1)
    expect(of('leasehold_queue_tasks', { priority: 'high' })).toBe(1)
    expect(of('leasehold_store_trouble')).toBe(0)
    expect(of('process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
    // Labels say nothing that somebody chose.
    expect(text).not.toMatch(/secret|ada|bob|alice|nowhere/)
    for (const [name, { help }] of families) expect(help, name).toMatch(/\.$/)
  })

  test('escapes labels and help as the format wants it', () => {
    const out = new Exposition()
    const odd = 'a "quote", a \\ and a\nline'
    out.gauge('odd', `Help with \\ and\nline.`, [{ value: 1.5e-7, labels: { odd, plain: 'x' } }])
    const { samples } = parseExposition(out.text()).get('odd')!
    expect(samples).toEqual([{ name: 'odd', labels: { odd, plain: 'x' }, value: 1.5e-7 }])
  })

  test.each([
    ['a counter without _total', '# HELP a A.\n# TYPE a counter\na 1\n'],
    ['a sample before its type', 'a_total 1\n'],
    ['the same sample twice', '# HELP a A.\n# TYPE a gauge\na 1\na 1\n'],
    ['a bad label', '# HELP a A.\n# TYPE a gauge\na{x="\\q"} 1\n'],
    ['buckets that fall', FALLING],
  ])('%s is found by the check', (_, text) => {
    expect(() => parseExposition(text)).toThrow(/^(?:no|not|twice|bad|h is)/)
  })

  test('has everything that docs/grafana.json asks for', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const { text } = await send(daemon.url, '/metrics', { token: daemon.secret })
    const families = parseExposition(text)
    const board = readFileSync(GRAFANA, 'utf8')
    const { panels } = JSON.parse(board) as { panels: { targets?: { expr: string }[] }[] }
    const asked = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const names = new Set(asked.flatMap((expr) => expr.match(/\b(?:leasehold|process)_\w+/g) ?? []))
    expect(names.size).toBeGreaterThan(15)
    for (const name of names) {
      const known = families.has(name) || families.has(name.replace(/_(?:bucket|sum|count)$/, ''))
      expect(known, name).toBe(true)
    }
  })
})

function hasAll(labels: Record<string, string>, wanted: object): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value)
}
