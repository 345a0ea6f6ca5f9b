import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { pidsNow, procText, signal } from './processes.ts'

const [UMOUNT] = ['umount'] as const

/** Ends everything that knows this folder, and unmounts what is mounted there. */
export function sweepUp(folder: string): void {
  for (let tries = 0; tries < 3; tries += 1) {
    for (const pid of pidsNow()) {
      if (pid === process.pid || !procText(pid, 'environ').includes(folder)) continue
      signal(pid, 'SIGKILL')
    }
  }
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const place = line.split(' ')[1]
    if (place?.startsWith(`${folder}/`)) spawnSync(UMOUNT, ['--lazy', place])
  }
}
