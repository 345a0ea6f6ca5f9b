import type { Caller } from '../../src/core/caller.ts'
import type { Where } from '../../src/core/paths/path_terms.ts'
import { releaseAll, releasePaths, reservePaths } from '../../src/core/paths/reservation.ts'
import type { ProcessRef } from '../../src/core/rows.ts'
import { nothingLooked } from '../../src/core/paths/overlap.ts'
import { judgePath, type Mode, touchPaths } from '../../src/core/paths/touch.ts'
import { askHolders, noticeWrites } from '../../src/core/paths/word.ts'
import type { Store } from '../../src/stores/writer/store.ts'

interface Options extends Partial<Where> {
  shared?: boolean
  ttl_ms?: number
  process?: ProcessRef | null
  reason?: string
}

const TTL_MS = 60_000

const HERE: Where = { project: '', checkout: '/repo', repository: null }

/** What can be asked about paths, straight on the rules. */
export class PathVerbs {
  constructor(readonly store: Store) {}

  reserve(paths: string | string[], caller: Caller, options: Options = {}) {
    const { shared = false, ttl_ms = TTL_MS, process = null, reason = null, ...where } = options
    const ask = { globs: [paths].flat(), shared, ttl_ms, process, reason, ...HERE, ...where }
    return this.store.write((view) => reservePaths(view, ask, caller))
  }

  /** One glob: its lease. */
  async one(path: string, caller: Caller, options: Options = {}) {
    return (await this.reserve(path, caller, options)).leases[0]!
  }

  release(paths: string | string[], caller: Caller, options: Options & { fence?: number } = {}) {
    const { process = null, fence, ...where } = options
    const ask = { globs: [paths].flat(), fence, process, ...HERE, ...where }
    return this.store.write((view) => releasePaths(view, ask, caller))
  }

  releaseAll(caller: Caller, options: Options & { nested?: boolean } = {}) {
    const { process = null, nested = false, ...here } = options
    return this.store.write((view) => releaseAll(view, { here, nested, process }, caller))
  }

  touch(
    paths: string | string[],
    caller: Caller,
    options: Options & { mode?: Mode; keep_ms?: number; hears?: boolean } = {},
  ) {
    const { mode = 'auto', ttl_ms = TTL_MS, process = null, reason = null, ...where } = options
    const ask = { paths: [paths].flat(), mode, ttl_ms, process, reason, ...HERE, ...where }
    return this.store.write((view) => touchPaths(view, ask, caller))
  }

  /** Leaves a reason for who holds these paths; says of which its holder will read. */
  async ask(paths: string | string[], caller: Caller, reason: string): Promise<boolean[]> {
    const ask = { paths: [paths].flat(), process: null, reason, ...HERE }
    return (await this.store.write((view) => askHolders(view, ask, caller))).map(({ told }) => told)
  }

  /** These paths were changed by nobody knows whom. */
  async notice(paths: string | string[], caller: Caller): Promise<string[]> {
    const ask = { paths: [paths].flat(), process: null, ...HERE }
    const told = await this.store.write((view) => noticeWrites(view, ask, caller))
    return told.map(({ verdict }) => verdict.state)
  }

  /** `free`, `mine`, or who holds it. */
  check(path: string, caller: Caller, where: Partial<Where> = {}): Promise<string> {
    return this.store.read((view) => {
      const verdict = judgePath(
        view,
        path,
        { ...HERE, ...where },
        { ...caller, given: true },
        nothingLooked(),
      )
      return verdict.state === 'held' ? verdict.lease.holder : verdict.state
    })
  }
}
