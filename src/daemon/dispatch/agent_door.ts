import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivate } from '../../machine/private_file.ts'
import type { Store } from '../../stores/writer/store.ts'
import { type Door, openDoor } from '../door.ts'
import { VERSION } from '../../machine/version.ts'

const FILE = 'dispatch.json'

export interface AgentDoor extends Door {
  /** The next dispatcher shall open its door here. */
  remember(): void
}

/**
 * The door of a dispatcher that has no daemon beside it: agents come in with the tokens of their
 * runs, exactly as they do at a daemon's, and nobody is told its admin's secret. It is opened where
 * the last one was, if that port is free: agents that outlived that dispatcher find it there again.
 */
export async function openAgentDoor(store: Store, folder: string): Promise<AgentDoor> {
  const secret = randomBytes(32).toString('base64url')
  const door = await openDoor(store, { port: [lastPort(folder), 0], version: VERSION, secret })
  const port = Number(new URL(door.url).port)
  return { ...door, remember: () => writePrivate(folder, FILE, `${JSON.stringify({ port })}\n`) }
}

/** 0, which takes any, when there was none. */
function lastPort(folder: string): number {
  try {
    const { port } = JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as { port: unknown }
    return Number.isInteger(port) && Number(port) > 1023 && Number(port) < 65_536 ? Number(port) : 0
  } catch {
    return 0
  }
}
