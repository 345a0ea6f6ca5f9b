import { expect, test } from 'vitest'
import { saidNow } from '../../src/doors/cli/renamed.ts'

const now = (text: string) => {
  const told: string[] = []
  return { words: saidNow(text.split(' '), (what) => told.push(what)).join(' '), told }
}

test('a name of the last release is understood, and the new one is told', () => {
  expect(now('--json dashboard --viewer')).toEqual({
    words: '--json up --link --viewer',
    told: ['leasehold dashboard is now: leasehold up --link'],
  })
  expect(now('--agent ada event list --by=bob').words).toBe('--agent ada event list --by-agent=bob')
  expect(now('init --agent claude,codex --yes').words).toBe('init --client claude,codex --yes')
})

test('other words stay as they are, also where an agent is called like a command', () => {
  for (const said of ['--agent dashboard task list', 'event list --by-agent bob', '-V', 'init']) {
    expect(now(said)).toEqual({ words: said, told: [] })
  }
})

test('what is no more says what to do instead', () => {
  expect(() => now('service install')).toThrow(/service is no more/)
})
