import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '../../../client/connect.ts'
import { Refusal } from '../../../core/refusal.ts'
import { saveFile, TODO } from './repository.ts'
import { type AgentOrders, type DemoTask, LOOK_MS, pause } from './words.ts'

/** All that differs between both halves: how an agent comes to its task and to its file. */
export interface Coordination {
  /** The next task; with `elsewhere`, the next one that is about that file. */
  take(elsewhere?: string): Promise<DemoTask | undefined>
  /** Who has the file; undefined when it is now ours. */
  open(file: string): Promise<string | undefined>
  /** The edit is written. */
  shut(file: string): Promise<void>
  finish(task: DemoTask): Promise<void>
  /** The task was taken and cannot be worked on now. */
  putBack(task: DemoTask): Promise<void>
  close(): Promise<void>
}

export function coordinate(orders: AgentOrders): Promise<Coordination> {
  return orders.way === 'with' ? throughLeasehold(orders) : Promise.resolve(byTheList(orders))
}

/** A list in the repository, as people keep it: take the first open task, and mark it as yours. */
function byTheList({ repository, agent }: AgentOrders): Coordination {
  const path = join(repository, TODO)
  const mark = (id: string, from: RegExp, to: string) => {
    const text = readFileSync(path, 'utf8')
    const lines = text.split('\n').map((line) => {
      return line.endsWith(` #${id}`) ? line.replace(from, to) : line
    })
    saveFile(path, lines.join('\n'), agent)
  }
  return {
    take: async () => {
      const found = /^- \[ \] (\S+) #(\d+)$/m.exec(readFileSync(path, 'utf8'))
      if (!found) return undefined
      const [, file, id] = found as unknown as [string, string, string]
      // To read a list and to edit it are two steps of an agent, with a thought in between.
      await pause(LOOK_MS)
      mark(id, /^- \[ \]/, '- [~]')
      return { id, file }
    },
    open: async () => undefined,
    shut: async () => undefined,
    finish: async ({ id }) => mark(id, /^- \[.\]/, '- [x]'),
    putBack: async ({ id }) => mark(id, /^- \[.\]/, '- [ ]'),
    close: async () => undefined,
  }
}

export const todoList = (tasks: DemoTask[]) =>
  `# To do\n\n${tasks.map(({ id, file }) => `- [ ] ${file} #${id}`).join('\n')}\n`

/** The same, through the store: a task is claimed, a file is reserved, a refusal is heeded. */
async function throughLeasehold({ agent, state }: AgentOrders): Promise<Coordination> {
  const client = await connect({ dir: state, agent })
  return {
    take: async (elsewhere) => {
      const claim = await client.claimNext(elsewhere === undefined ? {} : { label: elsewhere })
      return claim && { id: claim.task.id, file: claim.task.title }
    },
    open: async (file) => {
      try {
        await client.reserve.add({ paths: [file] })
        return undefined
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'held') throw error
        const { holder } = error.details
        return typeof holder === 'string' ? holder : 'another agent'
      }
    },
    shut: async (file) => {
      await client.reserve.release({ paths: [file] })
    },
    finish: async ({ id }) => {
      await client.task.status({ id, status: 'done' })
    },
    putBack: async ({ id }) => {
      await client.task.status({ id, status: 'todo' })
    },
    close: () => client.close(),
  }
}
