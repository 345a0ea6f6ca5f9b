import { io } from '../io.ts'

/** Whether a person has said yes. Asked on a terminal only. */
export async function isConfirmed(message: string): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  return (await confirm({ message, initialValue: false })) === true
}

export const isTerminal = () => io().stdin.isTTY && io().stdout.isTTY
