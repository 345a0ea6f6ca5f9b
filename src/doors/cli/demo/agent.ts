import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { saveFile } from './repository.ts'
import { type Coordination, coordinate } from './ways.ts'
import type { AgentOrders, FromAgent, ToAgent } from './words.ts'

/**
 * One agent of the demo, a process of its own. It does what a coding agent does, only faster: take
 * a task, read the file, think, write the whole file with one line more. Both halves of the demo
 * run this very code.
 */
const orders = JSON.parse(process.argv[2]!) as AgentOrders
const THINK_MS = { least: 150, most: 450 }
const LOOK_AGAIN_MS = { least: 20, most: 60 }

let isStopped = false

async function work(how: Coordination): Promise<void> {
  for (let n = 1; !isStopped; n++) {
    const task = await how.take()
    if (!task) {
      await pause(LOOK_AGAIN_MS)
      continue
    }
    if (!(await gotFile(how, task.file))) {
      await how.putBack(task)
      return
    }
    tell({ say: 'doing', what: `edits ${task.file}` })
    const path = join(orders.repository, task.file)
    const read = readFileSync(path, 'utf8')
    await pause(THINK_MS)
    const line = `// ${orders.agent}, edit ${n}: task ${task.id}`
    saveFile(path, `${read}${line}\n`, orders.agent)
    tell({ say: 'edited', file: task.file, line })
    await how.shut(task.file)
    await how.finish(task)
    tell({ say: 'finished', task: task.id })
  }
}

/** Waits for a file that another has; false when the time is up before. */
async function gotFile(how: Coordination, file: string): Promise<boolean> {
  let holder = await how.open(file)
  if (holder === undefined) return true
  tell({ say: 'refused', file, holder })
  for (; holder !== undefined; holder = await how.open(file)) {
    if (isStopped) return false
    tell({ say: 'doing', what: `waits for ${file}, which ${holder} has` })
    await pause(LOOK_AGAIN_MS)
  }
  return true
}

function pause({ least, most }: { least: number; most: number }): Promise<void> {
  const ms = least + Math.random() * (most - least)
  return new Promise((resolve) => void setTimeout(resolve, ms))
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
