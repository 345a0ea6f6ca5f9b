import type { Command } from 'commander'
import pc from 'picocolors'
import { argument } from '../../../core/quote.ts'
import { Refusal } from '../../../core/refusal.ts'
import type { SeenWorktree } from '../../../core/queue/worktree.ts'
import { hostIn } from '../../../machine/host.ts'
import * as worktrees from '../../../operations/worktrees.ts'
import { folderOf } from '../../../stores/open.ts'
import type { Context } from '../context.ts'
import { refuseWithToken } from '../family.ts'
import { print } from '../show/show.ts'
import type { Enter } from './operations.ts'

/** What has to do with files: only the host that has them can do it. */
export function addWorktrees(group: Command, enter: Enter): void {
  group
    .command('diff')
    .argument('<id>', 'the worktree, by the run that it was made for: 42.1')
    .description('What a worktree has changed, committed or not, since its branch began.')
    .action(async (id: string, _: object, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const tree = await hereOf(context, id)
      const { diffOf } = await import('../../../daemon/main.ts')
      const diff = await diffOf(tree)
      print(context.json ? JSON.stringify({ id, diff }) : diff || 'Nothing has changed.')
    })
  group
    .command('salvage')
    .argument('<id>', 'the worktree')
    .description('Keep all that is in a worktree, commits too, under refs/leasehold/salvage.')
    .action((id: string, _: object, self: Command) => keep(self, enter, 'salvage', id))
  group
    .command('remove')
    .argument('<id>', 'the worktree')
    .description('Remove a worktree and its branch, if nothing would be lost.')
    .action((id: string, _: object, self: Command) => keep(self, enter, 'remove', id))
}

/** Refuses what is on another host, or would be done past a token. */
async function hereOf(context: Context, id: string): Promise<SeenWorktree> {
  refuseWithToken(context.env)
  const tree = await context.call(worktrees.get, { id })
  const host = hostIn(folderOf(context.place))
  if (tree.host === host) return tree
  throw new Refusal('invalid', `Worktree ${id} is on ${tree.host}, this is ${host}`, {
    next: `Ask there: leasehold worktree show ${id}`,
  })
}

async function keep(self: Command, enter: Enter, want: 'salvage' | 'remove', id: string) {
  const context = enter(self.optsWithGlobals())
  const tree = await hereOf(context, id)
  const { keepOne } = await import('../../../daemon/main.ts')
  const { place, env, json } = context
  const { why, refused } = await keepOne(tree, want, { place, folder: folderOf(place), env })
  if (refused) throw Refusal.from({ error: refused }, 0)
  if (why !== null) throw kept(tree, why)
  const now = want === 'salvage' ? await context.call(worktrees.get, { id }) : null
  if (json) return print(JSON.stringify({ id, removed: want === 'remove', salvage: now?.salvage }))
  const saved = now?.salvage ? `${now.salvage.ref} (${now.salvage.commit.slice(0, 12)})` : null
  if (want === 'remove') print(`${pc.green('removed')} ${tree.path} and its branch ${tree.branch}`)
  else if (saved) print(`${pc.green('saved')} as ${saved}`)
  else if (!now?.kept_because) print('Nothing to save: other refs have it all.')
  if (now?.kept_because) print(`${pc.yellow('kept')} ${tree.path}: ${now.kept_because}`)
}

/** What a person can do about each reason for which a worktree is kept. */
const NEXT: [about: string, next: string][] = [
  [
    'a part of it',
    'Try again: leasehold worktree salvage ID. If nothing can save it, move it away.',
  ],
  ['somebody has locked it', 'If nobody needs it: git worktree unlock PATH'],
  ['git is at work', 'If no git runs there, remove that file, and then ask again.'],
  ['a program is at work', 'End it, or have it leave that folder, and then ask again.'],
  ['there is another', 'Look at both folders, and move away what you need: PATH and PATH~removing'],
  ['it was moved', 'Move it back: git worktree move THERE PATH'],
  ['its repository', 'When nobody needs the files, remove them, and then ask again: rm -r PATH'],
  ['it has refs', 'Save what they lead to by a branch, and delete them: git update-ref -d REF'],
  ['', 'Look: leasehold worktree diff ID. To save all: leasehold worktree salvage ID'],
]

/** `conflict`: it would be lost. */
function kept({ id, path }: SeenWorktree, why: string): Refusal {
  const [, next] = NEXT.find(([about]) => why.startsWith(about))!
  return new Refusal('conflict', `Worktree ${id} is kept: ${why}`, {
    next: next
      .replaceAll('ID', id)
      .replace('PATH', argument(path))
      .replace('THERE', argument(why.replace(/^it was moved to /, ''))),
    details: { id, path },
  })
}
