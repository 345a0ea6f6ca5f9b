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
  | { say: 'began'; file: string }
  /** It was about to edit a file that another agent has; now it takes other work. */
  | { say: 'refused'; file: string; holder: string }
  /** Acknowledged: the agent has written this line into its file, and goes on. */
  | { say: 'edited'; line: string }
  | { say: 'finished'; task: string }

export interface DemoTask {
  id: string
  file: string
}

/** How long an agent takes for a look at something: the list, or a file that another has. */
export const LOOK_MS = { least: 20, most: 60 }

/** Some time between these, another each time, so that agents do not march in step. */
export function pause({ least, most }: { least: number; most: number }): Promise<void> {
  const ms = least + Math.random() * (most - least)
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
