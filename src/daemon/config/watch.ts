import { watch } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Refusal } from '../../core/refusal.ts'
import { CONFIG_FILE } from '../../stores/open.ts'
import { type Config, readConfig } from './config.ts'

interface Listener {
  changed(config: Config): void
  failed(refusal: Refusal): void
}

/** Saving is several changes in a row: the last one counts, and a half-written file is not read. */
const SETTLE_MS = 50

/**
 * Tells `on` of each later change of `config.json` in `folder`: the new settings, or why they are
 * refused, in which case the old ones stay. A file that says the same as before is no change, a
 * deleted one means the defaults. Keeps no process alive. Returns a function that ends it.
 *
 * Watch first and read then: a change in between is reported twice rather than missed.
 */
export function watchConfig(folder: string, env: NodeJS.ProcessEnv, on: Listener): () => void {
  let timer: NodeJS.Timeout | undefined
  let current: Config | undefined
  const look = () => {
    const read = readOrRefuse(folder, env)
    if (read instanceof Refusal) return on.failed(read)
    if (isDeepStrictEqual(read, current)) return
    current = read
    on.changed(read)
  }
  const watcher = watchFolder(folder, on, () => {
    clearTimeout(timer)
    timer = setTimeout(look, SETTLE_MS).unref()
  })
  const first = readOrRefuse(folder, env)
  if (!(first instanceof Refusal)) current = first
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}

function readOrRefuse(folder: string, env: NodeJS.ProcessEnv): Config | Refusal {
  try {
    return readConfig(folder, env)
  } catch (error) {
    if (error instanceof Refusal) return error
    // Thrown by a timer, it would end the daemon for a file that cannot be read just now.
    return unseen(resolve(folder), error)
  }
}

/** The folder, not the file: editors replace a file by a new one, which its watch would not see. */
function watchFolder(folder: string, on: Listener, changed: () => void) {
  const lost = (error: unknown) => on.failed(unseen(resolve(folder), error))
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => {
      if (name === null || name === CONFIG_FILE) changed()
    })
    return watcher.on('error', lost)
  } catch (error) {
    lost(error)
    return undefined
  }
}

function unseen(folder: string, error: unknown): Refusal {
  const { code, message } = error as NodeJS.ErrnoException
  const what = `Changes of ${CONFIG_FILE} in ${folder} go unseen (${code ?? message})`
  return new Refusal('unavailable', what, { next: 'Restart the daemon after a change.' })
}
