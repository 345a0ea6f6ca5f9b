import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { expectSilent, repository, SESSIONS } from './agents.ts'

/** Whether a process waits for what comes in: its event loop looks at that file. */
function isReading(pid: number): boolean {
  const folder = `/proc/${pid}/fdinfo`
  const isWatching = (fd: string) => /^tfd:\s+0\s/m.test(readFileSync(join(folder, fd), 'utf8'))
  try {
    return readdirSync(folder).some(isWatching)
  } catch {
    return false
  }
}

describe('what an agent says to its hook', () => {
  test('counts as soon as it is whole, in whatever pieces it comes', async () => {
    const { place, repo, a } = repository()
    expectSilent(await a.edit('a.ts'))
    const ask = (more: object) =>
      JSON.stringify({ session_id: SESSIONS.b, cwd: repo, tool_name: 'Edit', ...more })
    const hook = () => place.start(['hook', 'claude', 'pre-tool-use'], { cwd: repo })
    const edit = { tool_input: { file_path: join(repo, 'a.ts') } }
    const pieces = hook()
    const [head, tail] = [ask(edit).slice(0, -1), ask(edit).slice(-1)]
    pieces.child.stdin!.write(head)
    await until('the first piece is read', () => isReading(pieces.pid))
    pieces.child.stdin!.write(tail)
    const large = hook()
    large.child.stdin!.end(ask({ ...edit, text: 'x'.repeat(300_000) }))
    const silent = hook()
    for (const running of [pieces, large]) {
      await running.ended
      expect(running.err).toContain(`a.ts is reserved by ${a.id}`)
      expect(running.child.exitCode).toBe(2)
    }
    await silent.ended
    expect(silent.err).toContain('its input is not JSON')
  })
})
