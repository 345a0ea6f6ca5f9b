import { pidsNow, procText, statOf } from './processes.ts'
import type { Scene } from './scene.ts'
import type { Role } from './history.ts'

export interface Found {
  pid: number
  who: string
  role: Role
}

/** Processes that our programs started by themselves: runners, watchers and commands. */
export class Finder {
  private readonly known = new Map<string, Role | undefined>()
  /** Were there before, and are none of ours. */
  private readonly others = new Set(pidsNow())

  constructor(private readonly scene: Scene) {}

  all(): Found[] {
    return pidsNow().flatMap((pid): Found[] => {
      if (this.others.has(pid)) return []
      const stat = statOf(pid)
      if (!stat || stat.state === 'Z') return []
      const key = `${pid}:${stat.start}`
      const role = this.known.get(key) ?? this.roleOf(pid)
      this.known.set(key, role)
      return role ? [{ pid, who: `${role}:${key}`, role }] : []
    })
  }

  private roleOf(pid: number): Role | undefined {
    const environ = procText(pid, 'environ')
    if (!environ.includes(this.scene.folder)) return undefined
    const line = procText(pid, 'cmdline').replaceAll('\0', ' ')
    if (line.includes('runner.cjs')) return 'runner'
    if (line.includes('kill -s TERM')) return 'watcher'
    if (!line.includes('witness.sh') && !line.startsWith('/bin/sh -s')) return undefined
    // The gate before it became the command runs the same line.
    if (line.includes('read -r go') || line.includes('bin/leasehold')) return undefined
    return environ.includes('LEASEHOLD_RUN=') ? 'agent command' : 'command'
  }
}
