import { type GitRepo, gitRepo } from '../support/git_repo.ts'
import { type Asking, pause } from './scene.ts'

/** A shop whose agents work in worktrees of their own, and land what they did. */

/** What each task's agent does: one lands, the others have something that brings them back. */
const AGENT = `
commit() { git add -A; git -c user.name=Agent -c user.email=agent@example.org commit -qm "$1"; }
case $LEASEHOLD_TASK in
  # The sale begins before this has landed, and ends after it: they conflict.
  S-price) until git rev-parse -q --verify leasehold/S-sale-1; do sleep 0.05; done
    echo 'export const price = 12' > src/price.ts; commit 'Raise the price' ;;
  S-sale) echo 'export const price = 8' > src/price.ts; commit 'Lower the price'
    while [ "$(git rev-parse main)" = "$(git merge-base HEAD main)" ]; do sleep 0.05; done ;;
  S-tax) echo '// TODO' > src/tax.ts; commit 'Tax' ;;
  S-mail) echo 'export const from = 0' > src/mail.ts; commit 'Mail'; echo more >> src/mail.ts ;;
  S-stock) echo '// half' > src/stock.ts; sleep 600 ;;
esac
`
const CHECK = `
echo '> shop@1.0.0 test'
if grep -q TODO src/tax.ts; then
  echo '  ✗ adds a tax of 19 % (src/tax.test.ts:12)'; echo '1 failed, 40 passed'; exit 1
fi
echo '41 passed'
`

/** By the task that it is enqueued as; what becomes of it is in the words of the operations. */
export const SHOP = {
  'S-price': { prompt: 'Raise the price to 12', user: 'frances', ends: 'done' },
  'S-sale': { prompt: 'Lower the price for the sale', user: 'hedy', ends: 'failed' },
  'S-tax': { prompt: 'Add the tax of each country', user: 'joan', ends: 'failed' },
  'S-mail': { prompt: 'Send the mail from our own address', user: 'ken', ends: 'failed' },
  'S-stock': { prompt: 'Count what is in stock', user: 'dennis', ends: 'in_progress' },
} as const

export function shopRepo(top: string): GitRepo {
  const names = ['price', 'tax', 'mail', 'stock']
  const files = names.map((name) => [`src/${name}.ts`, `export const ${name} = 10\n`])
  return gitRepo(top, { 'README.md': '# Shop\n', ...Object.fromEntries(files) })
}

/** For config.json. */
export function shopConfig({ top }: GitRepo) {
  const land = { onto: 'main', check: ['/bin/sh', '-c', CHECK], auto: true }
  return {
    slots: { max: 6 },
    agents: { shop: { command: ['/bin/sh', '-c', AGENT] } },
    projects: { shop: { path: top, agent: 'shop', worktrees: true, land } },
  }
}

/** Runs all of them, until each has landed, come back, or begun. */
export async function playShop(asking: Asking): Promise<void> {
  for (const [id, { prompt, user }] of Object.entries(SHOP)) {
    await asking.ask('queue.add', { id, prompt, user, project: 'shop' })
  }
  for (const [id, { ends }] of Object.entries(SHOP)) {
    await become(asking, 'task.get', { id }, ({ status }) => status === ends)
  }
  const running = (items: { state: string }[]) => items.some(({ state }) => state === 'ready')
  await become(asking, 'worktree.list', { task_id: 'S-stock' }, ({ items }) => running(items))
}

/** Two branches in line: what somebody has in the checkout is in the way of the first. */
export async function playLine(asking: Asking, repo: GitRepo): Promise<void> {
  const branches = { 'docs/opening': 'README.md', 'feature/search': 'src/search.ts' }
  for (const [name, path] of Object.entries(branches)) {
    repo.git('switch', '--quiet', '--create', name)
    repo.commit(`Write ${path}`, { [path]: '// new\n' })
    repo.git('switch', '--quiet', 'main')
  }
  repo.write({ 'README.md': '# Shop\n\nNot committed yet.\n' })
  for (const id of Object.keys(branches)) {
    await asking.ask('land.add', { id, project: 'shop', agent: 'ada' })
  }
  const waits = { status: 'waiting', project: 'shop' }
  await become(asking, 'land.list', waits, ({ items }) => {
    return items.length === 2 && items[1].reason !== null
  })
}

/** Where the page shows the last landing of a task. */
export async function hrefOfLanding(asking: Asking, task_id: string): Promise<string> {
  const { items } = await asking.ask('land.list', { task_id })
  return `#/who?tab=landings&id=${items[0].id}`
}

async function become(
  asking: Asking,
  name: string,
  input: object,
  // oxlint-disable-next-line typescript/no-explicit-any -- what a server answers has any shape
  is: (answer: any) => boolean,
): Promise<void> {
  while (!is(await asking.ask(name, input))) await pause(50)
}
