import { join } from 'node:path'
import type { Client } from './client.ts'
import { filesNamed } from './scene.ts'
import { type Bench, type Cells, stepsOf } from './trials.ts'
import { World } from './world.ts'

/** What people have their agents do all day; none of it is ours, and none may be lost by `init`. */
const COMMANDS = [
  ...[
    'ls',
    'pwd',
    'cat a.txt',
    'head -1 a.txt',
    'wc -l a.txt',
    'grep -n two a.txt',
    'find . -name a.txt',
  ],
  ...[
    'git status --short a.txt',
    'git log --oneline -1 a.txt',
    'git diff a.txt',
    'git show HEAD:a.txt',
  ],
  ...['echo hello', 'date +%Z', 'env true', 'mkdir -p made', 'touch made/b.txt', 'node -e "1"'],
  ...['npm --version', 'git add a.txt', 'git commit -qm again --allow-empty'],
]

const MODES = ['once', 'usual'] as const

/** Which of the commands come out otherwise in a repository that `init` has set up. */
export async function tryOrdinary(bench: Bench, client: Client, cells: Cells): Promise<void> {
  const said: string[] = []
  for (const mode of MODES) {
    const before = await play(bench, client, mode, false)
    const after = await play(bench, client, mode, true)
    const other = COMMANDS.filter((_, i) => before[i] !== after[i])
    for (const command of other) {
      const i = COMMANDS.indexOf(command)
      console.log(`  ${client.kind} ${mode} ${command}: ${before[i]} → ${after[i]}`)
    }
    said.push(`${COMMANDS.length - other.length} of ${COMMANDS.length}`)
  }
  cells.ordinary = said.join(', ')
}

async function play(
  { folder, bin }: Bench,
  client: Client,
  mode: (typeof MODES)[number],
  isSetUp: boolean,
): Promise<string[]> {
  const root = join(folder, `ordinary-${client.kind}-${mode}-${isSetUp}`)
  const world = await World.make(root, bin, [client], filesNamed('a'), { isSetUp })
  try {
    const { shell } = client.words(world)
    const steps = [...stepsOf(COMMANDS.map((each) => shell(each))), { text: 'Done.' }]
    await world.play(client, 'ordinary', steps, client[mode])
    return COMMANDS.map((_, i) => plain(world.model.result('ordinary', i) ?? 'never', root))
  } finally {
    await world.end()
  }
}

/** Without what differs from run to run; names of our files are not the command's doing. */
const plain = (text: string, root: string) =>
  /denied|not permitted|permission|requires? approval|rejected|not allowed|declined/i.test(text)
    ? `refused: ${text.replaceAll(root, '').slice(0, 200)}`
    : /Leasehold/.test(text)
      ? `said: ${text.slice(0, 300)}`
      : text === 'never'
        ? text
        : 'run'
