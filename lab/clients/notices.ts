import { join } from 'node:path'
import type { Client } from './client.ts'
import type { Step } from './model.ts'
import { filesNamed } from './scene.ts'
import { type Bench, type Cells, stepsOf } from './trials.ts'
import { held, World } from './world.ts'

const WHY = 'the fix of 42 waits for it'

/**
 * What nobody could refuse: a program that the client starts writes another agent's file, and one
 * changes while its model thinks. And a word of another agent to the client, which has a file.
 */
export async function tryNotices(bench: Bench, client: Client, cells: Cells): Promise<void> {
  const files = { ...filesNamed('script', 'between', 'asked'), 'make.sh': 'echo B > script.txt\n' }
  const root = join(bench.folder, `notices-${client.kind}`)
  const world = await World.make(root, bench.bin, [client], files)
  try {
    world.run('leasehold', 'reserve', 'add', 'script.txt', 'between.txt', '--agent', 'holder')
    const words = client.words(world)
    const shell = (): Step => ({ calls: [words.shell('true')] })
    const [between, asked] = [held(shell()), held(shell())]
    const running = world.start(
      client,
      client.once(
        world.script('notices', [
          ...stepsOf([words.shell('sh make.sh')]),
          between.step,
          ...stepsOf([words.read('asked.txt'), words.edit('asked.txt', 'two', 'A')]),
          asked.step,
          { text: 'Done.' },
        ]),
      ),
    )
    await running.reaches(between.gate)
    world.write('between.txt', 'B\n')
    between.gate.open()
    await running.reaches(asked.gate)
    world.run('leasehold', 'reserve', 'ask', 'asked.txt', '--reason', WHY, '--agent', 'other')
    asked.gate.open()
    await running.ended
    /** What came of a step is in the next request, and was not in the one before. */
    const isTold = (step: number, text: string) => {
      const body = (at: number) => world.model.asked.find((each) => each.step === at)?.body ?? ''
      return body(step + 1).includes(text) && !body(step).includes(text)
    }
    const isOfScript = isTold(0, 'script.txt, reserved by holder')
    Object.assign(cells, {
      script: isOfScript && world.read('script.txt') === 'B\n' ? 'noticed' : 'not seen',
      between: isTold(1, 'between.txt, reserved by holder') ? 'noticed' : 'not seen',
      asked: isTold(4, WHY) ? 'read' : 'not read',
    })
  } finally {
    await world.end()
  }
}
