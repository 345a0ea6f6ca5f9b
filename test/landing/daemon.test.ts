import { expect, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'
import { BIN } from '../support/processes.ts'

/**
 * It says that it is done without having anything to show. Told so in its next prompt, it makes a
 * branch and asks for its landing, and is told what happens.
 */
const AGENT = `
cat > "$OUT/prompt-$LEASEHOLD_RUN"
grep -q 'came back' "$OUT/prompt-$LEASEHOLD_RUN" || exit 0
blob=$(echo mended | git hash-object -w --stdin)
tree=$( (git ls-tree HEAD; printf '100644 blob %s\\tmended.txt\\n' "$blob") | git mktree)
commit=$(git -c user.name=A -c user.email=a@b commit-tree -p HEAD -m Mended "$tree")
git update-ref refs/heads/mend "$commit"
"$NODE" "$BIN" land --branch mend > "$OUT/told" 2>&1
`

test('a run that only says "done" is run again, told why, and lands what it did then', async () => {
  const all = dispatching()
  const repo = gitRepo(all.place.path('repository'))
  const env = { NODE: process.execPath, BIN, PATH: process.env['PATH'] }
  const land = { onto: 'main', check: ['test', '-e', 'mended.txt'], auto: true }
  all.configure({
    agents: { mender: script(AGENT, { env }) },
    // The main checkout is where it works: a worktree would have a branch from the start.
    projects: { web: { agent: 'mender', path: repo.top, land, worktrees: false } },
  })
  await all.serve()
  await all.add('42', 'ada', { retries: 1 })
  const { metadata } = await all.become('42', 'done')
  expect(all.read('prompt-42.1')).toBe('do 42')
  expect(all.read('prompt-42.2')).toMatch(/^do 42\n[^]*came back.*it has no branch of its own/)
  expect(all.read('told')).toMatch(/^Task 42 is in line for main \(landing L\d+\)\./)
  expect(metadata).toMatchObject({ proof: { commit: repo.head('main'), onto: 'main' } })
  expect(metadata).not.toHaveProperty('returned')
  expect(repo.git('show', 'main:mended.txt')).toBe('mended')
  const { items } = await all.daemon.ok('land.list', { task_id: '42' })
  expect(items.map(({ status }: { status: string }) => status)).toEqual(['landed', 'returned'])
})
