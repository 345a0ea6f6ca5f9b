import { dirname, resolve } from 'node:path'
import { isInside } from '../../machine/checkout.ts'
import { gitList, tryGit } from '../../machine/git.ts'
import { STATE_NAME } from '../../machine/place.ts'

/** A repository, and the state folder of the store whose lander works in it. */
interface Where {
  top: string
  common: string
  state: string
}

/** An empty tree has the same name in every repository. */
const EMPTY = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** Paths with which `commit` would write to a state folder, in whatever checkout it is: see R50. */
export async function reachesState(where: Where, base: string, commit: string): Promise<string[]> {
  const { out } = await tryGit(where.top, ['merge-base', base, commit])
  const from = out.trim().split('\n')[0] || EMPTY
  const asked = ['diff-tree', '-r', '-z', '--no-renames', '--name-only', from, commit]
  return (await gitList(where.top, asked)).filter((path) => isState(where, path))
}

function isState({ top, common, state }: Where, path: string): boolean {
  if (path.toLowerCase().split('/').includes(STATE_NAME)) return true
  return [top, dirname(common)].some((each) => {
    const at = resolve(each, path)
    return isInside(state, at) || isInside(at, state)
  })
}
