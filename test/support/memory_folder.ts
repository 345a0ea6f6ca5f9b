import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SHARED_MEMORY = '/dev/shm'

/**
 * A folder in memory where there is one: for what need not outlast a power cut, there is no waiting
 * for a disk. A container may have as little as 64 MB there, or run no program that lies there, and
 * then it is the usual one.
 */
export function memoryFolder(holds: 'files' | 'programs' = 'files'): string {
  if (!existsSync(SHARED_MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(SHARED_MEMORY)
  const isFit = bavail * bsize > 2 * 1024 ** 3 && (holds === 'files' || mayRunPrograms())
  return isFit ? SHARED_MEMORY : tmpdir()
}

function mayRunPrograms(): boolean {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const options = mounts.map((line) => line.split(' ')).findLast(([, at]) => at === SHARED_MEMORY)
  return options?.[3]?.split(',').includes('noexec') === false
}

const folders: string[] = []

/** A fresh folder that goes away when the test file has ended. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(memoryFolder(), 'leasehold-test-'))
  folders.push(dir)
  return dir
}

export function removeTemporaryFolders(): void {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true })
}
