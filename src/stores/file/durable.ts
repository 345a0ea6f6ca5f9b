import { type BigIntStats, constants, mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** A new file, complete and on disk when this returns. Never follows or overwrites anything. */
export async function writeDurably(path: string, bytes: Buffer): Promise<BigIntStats> {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  const file = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
    return await file.stat({ bigint: true })
  } finally {
    await file.close()
  }
}

/** A folder of our own, whose name will be there after a power loss as well. */
export async function makeFolder(dir: string): Promise<void> {
  const first = mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  const top = dirname(resolve(first))
  for (let made = resolve(dir); made !== top; made = dirname(made)) await syncFolder(dirname(made))
}

export async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
