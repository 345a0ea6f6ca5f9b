/** What the demo and its agents tell each other, over the pipe between them. */

export type Way = 'without' | 'with'

/** What an agent is started with. */
export interface AgentOrders {
  way: Way
  agent: string
  /** The repository that all of them edit. */
  repository: string
  /** The state folder, where there is one. */
  state: string
}

export type ToAgent = { say: 'go' } | { say: 'stop' }

export type FromAgent =
  | { say: 'ready' }
  /** For the picture only. */
  | { say: 'doing'; what: string }
  /** It was refused a file that another agent has. Said once per task, however long it waits. */
  | { say: 'refused'; file: string; holder: string }
  /** Acknowledged: the agent has written this line into the file, and goes on. */
  | { say: 'edited'; file: string; line: string }
  | { say: 'finished'; task: string }

export interface DemoTask {
  id: string
  file: string
}
