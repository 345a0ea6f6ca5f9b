import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FILES, saveFile } from './repository.ts'
import { type Coordination, coordinate } from './ways.ts'
import { type AgentOrders, type FromAgent, LOOK_MS, pause, type ToAgent } from './words.ts'

/**
 * One agent of the demo, a process of its own. It does what a coding agent does, only faster: take
 * a task, read the file, think, write the whole file with one line more. Both halves of the demo
 * run this very code.
 */
const orders = JSON.parse(process.argv[2]!) as AgentOrders
const THINK_MS = { least: 150, most: 450 }

let isStopped = false

async function work(how: Coordination): Promise<void> {
  let elsewhere: string | undefined
  for (let n = 1; !isStopped;) {
    const task = await how.take(elsewhere)
    elsewhere = undefined
    if (!task) {
      await pause(LOOK_MS)
      continue
    }
    const holder = await how.open(task.file)
    if (holder !== undefined) {
      tell({ say: 'refused', file: task.file, holder })
      await how.putBack(task)
      elsewhere = otherFile(task.file)
      await pause(LOOK_MS)
      continue
    }
    tell({ say: 'began', file: task.file })
    const path = join(orders.repository, task.file)
    const read = readFileSync(path, 'utf8')
    await pause(THINK_MS)
    const line = `// ${orders.agent}, edit ${n++}: task ${task.id}`
    saveFile(path, `${read}${line}\n`, orders.agent)
    tell({ say: 'edited', line })
    await Promise.all([how.shut(task.file), how.finish(task)])
    tell({ say: 'finished', task: task.id })
  }
}

function otherFile(file: string): string {
  const others = FILES.filter((each) => each !== file)
  return others[Math.floor(Math.random() * others.length)]!
}

const tell = (words: FromAgent) => void process.send?.(words)

async function main(): Promise<void> {
  const how = await coordinate(orders)
  const going = new Promise<void>((resolve) => {
    process.on('message', ({ say }: ToAgent) => {
      if (say === 'stop') isStopped = true
      resolve()
    })
  })
  tell({ say: 'ready' })
  await going
  await work(how)
  await how.close()
  process.disconnect?.()
}

// Ctrl-C goes to all processes of a terminal; the demo tells us when to end. Without it we end too.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => (isStopped ? undefined : process.exit(1)))
void main()
