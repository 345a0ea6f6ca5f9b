import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { isForPeople } from '../../src/doors/cli/family.ts'
import { program } from '../../src/doors/cli/main.ts'
import { operations } from '../../src/operations/registry.ts'
import { expectSilent, LEASEHOLD, repository } from '../hooks/agents.ts'
import { daemonOn } from '../support/daemons.ts'

const SECURITY = new URL('../../docs/security.md', import.meta.url)

/** What a command needs to be understood; it is refused before anything is done. */
const GIVEN: Record<string, string> = {
  'lock force-release': 'deploy',
  'queue limit': '--max 1',
  'queue release-user': 'ada',
  'token revoke': 'x',
  'token create': '--role admin --agent claude:bbbbbbbb',
  'worktree remove': '1.1',
  'db copy': '--from sqlite:/x --to sqlite:/y',
  'db restore': '/tmp/x.db --yes',
  'config approve': '--yes',
}

const nobody = () => {
  throw new Error('nothing is asked')
}

function forPeople(command: Command, path: string): string[] {
  if (command.commands.length === 0) return isForPeople(command) ? [path] : []
  return command.commands.flatMap((each) => forPeople(each, `${path} ${each.name()}`.trim()))
}

test('what only people may do is one list, and no agent does any of it', async () => {
  const { place, a } = repository()
  const people = forPeople(program(nobody, undefined), '').filter((name) => name !== 'help')
  expect(people.length).toBeGreaterThan(15)
  // An agent may start a server, and may not have its link.
  people.push('up --link')
  // The page has this list, word for word.
  const [, section = ''] = readFileSync(SECURITY, 'utf8').split('## What only people may do\n')
  const [list = ''] = section.split('\n\n')
  const named = [...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(people))
  // Every operation for admins that is a command is among them.
  const admins = operations.flatMap(({ role, command }) =>
    role === 'admin' && command ? [command.split(' ').slice(0, 2).join(' ')] : [],
  )
  expect(admins.filter((each) => !people.includes(each))).toEqual([])
  expect(operations.filter(({ role, tool }) => role === 'admin' && tool)).toEqual([])
  await daemonOn(place)
  expectSilent(await a.edit('a.ts'))
  const script = people
    .map(
      (name) => `${LEASEHOLD} ${name} ${GIVEN[name] ?? ''} 2>&1 < /dev/null; echo "= $? ${name}"`,
    )
    .join('\n')
  const said = (await a.sh(`{ ${script}\n}`)).out
  for (const name of people) {
    const command = name.replace(/ --.*/, '')
    expect(said).toContain(`error: ${command} is for a person, and not for ${a.id} to do`)
    expect(said).toContain(`= 4 ${name}\n`)
  }
})

test('of other commands, an agent has the part that takes nothing from anybody', async () => {
  const { place, repo, a, b } = repository()
  expectSilent(await b.edit('b.ts'))
  await b.leasehold('reserve add src/c.ts')
  expectSilent(await a.edit('a.ts'))
  const file = place.path('backup.db')
  expect(await a.leasehold(`db backup ${file}`)).toMatchObject({ code: 0 })
  const before = readFileSync(file)
  expect((await a.leasehold(`db backup ${file} --yes`)).err).toContain('is for a person')
  expect(readFileSync(file).equals(before)).toBe(true)
  writeFileSync(join(repo, 'b.ts'), 'mine\n')
  expect((await a.leasehold('reserve guard b.ts --restore')).err).toContain('is for a person')
  expect(readFileSync(join(repo, 'b.ts'), 'utf8')).toBe('mine\n')
  expect(await b.leasehold('reserve guard b.ts --restore')).toMatchObject({ code: 0 })
  expect(readFileSync(join(repo, 'b.ts'), 'utf8')).toBe('b.ts\n')
  expect((await a.leasehold('init --undo')).err).toContain('init is for a person')
  expect((await a.leasehold('--force lock release x')).err).toContain('is for a person')
  expect((await a.leasehold('lokc list')).err).toContain('There is no command lokc')
  expect(await a.leasehold('')).toMatchObject({ code: 0 })
})

test('a refusal names no way to free a lock where an agent’s id was given', async () => {
  const { place } = repository()
  await place.ok(['lock', 'acquire', 'deploy', '--agent', 'ada'])
  const asked = [
    ['--agent', 'bob', 'lock', 'acquire', 'deploy'],
    ['--agent', 'bob', '--force', 'lock', 'acquire', 'deploy'],
    ['--agent', 'bob', 'run', '--lock', 'deploy', '--', 'true'],
    ['--agent', 'bob', 'lock', 'release', 'deploy'],
  ]
  for (const args of asked) {
    const { code, err } = await place.cli(args)
    expect(code, args.join(' ')).not.toBe(0)
    expect(err, args.join(' ')).not.toContain('force-release')
  }
  const env = { LEASEHOLD_AGENT: 'bob' }
  const named = await place.cli(['run', '--lock', 'deploy', '--', 'true'], { env })
  expect(named.err).not.toContain('force-release')
  const person = await place.cli(['run', '--lock', 'deploy', '--', 'true'])
  expect(person.err).toContain('leasehold lock force-release deploy')
})
