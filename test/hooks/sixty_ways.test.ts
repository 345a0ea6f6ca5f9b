import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expectSilent, type Repo, repository } from './agents.ts'
import { NOTICED, REFUSED, waysText } from './ways.ts'

const PAGE = new URL('../../docs/hooks.md', import.meta.url)
const AT_ONCE = 4

const nameOf = (i: number) => `held/f${i}.ts`
const filled = (text: string, i: number) =>
  text
    .replaceAll('held/B', nameOf(i))
    .replaceAll('held.B', nameOf(i).replace('/', '.'))
    .replaceAll(/\bB\b/g, `f${i}.ts`)
    .replaceAll(/\bF\b/g, nameOf(i))

/** A repository with files that `a` has changed and reserved, each for one way to write it. */
async function scene(): Promise<Repo> {
  const made = repository()
  const { repo, git, place, a } = made
  mkdirSync(join(repo, 'held'))
  const count = REFUSED.length + NOTICED.length
  for (let i = 0; i < count; i += 1) writeFileSync(join(repo, nameOf(i)), `${i} theirs\n`)
  for (const name of ['other.txt', 'other.c']) writeFileSync(join(repo, name), 'other\n')
  git('add', '.')
  git('commit', '-qm', 'Files')
  execFileSync('tar', ['cf', 'all.tar', 'held'], { cwd: repo })
  for (let i = 0; i < count; i += 1) writeFileSync(join(repo, nameOf(i)), `${i} mine\n`)
  writeFileSync(join(repo, 'fix.diff'), git('diff', '-R', '--', 'held'))
  const names = Array.from({ length: count }, (_, i) => nameOf(i))
  // As an agent does that plans ahead, in its own shell.
  expectSilent(await a.edit('src/c.ts'))
  expect(await a.leasehold(`reserve add ${names.join(' ')}`)).toMatchObject({ code: 0 })
  const daemon = place.start(['serve', '--port', '0'])
  onTestFinished(async () => {
    daemon.kill('SIGTERM')
    await daemon.ended
  })
  await daemon.said(/127\.0\.0\.1/)
  return made
}

describe('of all ways for a shell to write what another has reserved', () => {
  test('each is refused, or noticed within one tool call', async () => {
    expect(REFUSED.length + NOTICED.length).toBeGreaterThanOrEqual(60)
    const { repo, b } = await scene()
    const text = (i: number) => {
      try {
        return readFileSync(join(repo, nameOf(i)), 'utf8')
      } catch {
        return undefined
      }
    }
    const refused: string[] = []
    for (let at = 0; at < REFUSED.length; at += AT_ONCE) {
      const some = REFUSED.slice(at, at + AT_ONCE)
      await Promise.all(
        some.map(async ({ command }, j) => {
          const said = await b.bash(filled(command, at + j))
          const isNamed = said.err.includes('reserved by claude:aaaaaaaa')
          if (said.code === 2 && isNamed) refused.push(command)
        }),
      )
    }
    expect(REFUSED.map(({ command }) => command).filter((each) => !refused.includes(each))).toEqual(
      [],
    )
    const missed: string[] = []
    for (const [k, way] of NOTICED.entries()) {
      const i = REFUSED.length + k
      for (const [name, content] of Object.entries(way.files ?? {})) {
        writeFileSync(join(repo, name), filled(content, i))
      }
      const command = filled(way.command, i)
      const before = await b.bash(command, { tool_use_id: `w${i}` })
      expect(before.code, `${command}\n${before.err}`).toBe(0)
      const was = text(i)
      const ran = await b.sh(`{ ${command}\n}`)
      expect(text(i), `${command} did nothing: ${ran.err}`).not.toBe(was)
      const said = await b.after('Bash', `w${i}`)
      if (!said.includes(`${nameOf(i)}, reserved by claude:aaaaaaaa`))
        missed.push(`${command}: ${said}`)
    }
    expect(missed).toEqual([])
  })

  test('and what neither sees is on the page, with its number', () => {
    expect(readFileSync(PAGE, 'utf8')).toContain(waysText())
  })
})
