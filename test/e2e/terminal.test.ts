import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { widthOf } from '../../src/doors/cli/show/width.ts'
import { BIN, type Running, sandbox, type Sandbox } from '../support/processes.ts'

const TERMINAL = fileURLToPath(new URL('terminal.py', import.meta.url))

function onTerminal(place: Sandbox, columns: number, ...args: string[]): Running {
  const program = ['python3', TERMINAL, '24', String(columns), process.execPath, BIN]
  const running = place.start(args, { program })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await running.ended
  })
  return running
}

test('a table fits the terminal, and counts the columns that a character takes', async () => {
  const place = sandbox()
  await place.ok(['task', 'add', '修复登录测试，然后写下发生了什么，以及为什么'])
  await place.ok(['task', 'add', 'é'.repeat(90), '--project', 'a-project-with-a-long-name'])
  await place.ok(['task', 'add', '絵文字🙂', '--project', '日本'])
  const running = onTerminal(place, 50, 'task', 'list')
  running.child.stdin!.end()
  const shown = (await running.ended).out.trimEnd().split('\r\n')
  expect(shown).toHaveLength(4)
  for (const line of shown) expect(widthOf(line), line).toBeLessThanOrEqual(50)
  expect(shown[2]).toContain('…')
  const at = (line: string, text: string) => widthOf(line.slice(0, line.indexOf(text)))
  expect(at(shown[3]!, '絵')).toBe(at(shown[0]!, 'TITLE'))
  // A script gets everything.
  expect((await place.cli(['task', 'list'])).out).toContain('é'.repeat(90))
})

test('what replaces a store or a backup is asked first, and --yes is the answer', async () => {
  const place = sandbox()
  await place.ok(['task', 'add', 'One'])
  const backup = place.path('one.db')
  await place.ok(['db', 'backup', backup])
  await place.ok(['task', 'add', 'Two'])
  const asked = onTerminal(place, 300, 'db', 'restore', backup)
  await asked.said(/is replaced, and leases end unless their command runs\. Go on\?/)
  asked.child.stdin!.write('n\r')
  expect(await asked.ended).toMatchObject({ code: 0 })
  expect((await place.ok(['task', 'list'])).items).toHaveLength(2)

  const before = readFileSync(backup)
  const over = onTerminal(place, 300, 'db', 'backup', backup)
  await over.said(/Write over .*one\.db\?/)
  over.child.stdin!.write('n\r')
  expect(await over.ended).toMatchObject({ code: 5 })
  expect(readFileSync(backup).equals(before)).toBe(true)
  await place.refused(['db', 'backup', backup], 'conflict', 5)
  await place.ok(['db', 'backup', backup, '--yes'])
  expect(readFileSync(backup).equals(before)).toBe(false)

  const sure = onTerminal(place, 300, 'db', 'restore', backup, '--yes')
  expect(await sure.ended).toMatchObject({ code: 0 })
  expect((await place.ok(['task', 'list'])).items).toHaveLength(2)
})
