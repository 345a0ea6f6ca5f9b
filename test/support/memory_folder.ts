import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const SHARED_MEMORY = '/dev/shm'

/**
 * A folder in memory where there is one: for what need not outlast a power cut, there is no waiting
 * for a disk. A container may have as little as 64 MB there, and then it is the usual one.
 */
export function memoryFolder(): string {
  if (!existsSync(SHARED_MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(SHARED_MEMORY)
  return bavail * bsize > 2 * 1024 ** 3 ? SHARED_MEMORY : tmpdir()
}
