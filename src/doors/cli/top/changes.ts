import { request } from 'node:http'
import { folderOf } from '../../../stores/open.ts'
import { type Daemon, findDaemon } from '../../../stores/server_file.ts'
import type { Context } from '../context.ts'

const RECONNECT_MS = 1_000
/** Without a daemon, what others write to the store is looked for this often. */
const FOLLOW_MS = 500

/**
 * Calls `changed` when something has happened, and after every time it could not be known. Looks
 * for a daemon anew when the one it listened to has gone. Returns how to stop.
 */
export function watchChanges(context: Context, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let stop = () => {}
  let stopped = false
  const again = () => {
    if (stopped) return
    changed()
    timer = setTimeout(connect, RECONNECT_MS)
  }
  const connect = () => {
    const daemon = findDaemon(context.env, folderOf(context.place))
    stop = daemon ? listen(daemon, changed, again) : follow(context, changed)
  }
  connect()
  return () => {
    stopped = true
    clearTimeout(timer)
    stop()
  }
}

/** Any byte of the stream but those that keep it open means that something has happened. */
function listen(daemon: Daemon, changed: () => void, ended: () => void): () => void {
  let over = false
  const end = () => {
    if (!over) ended()
    over = true
  }
  const headers = { authorization: `Bearer ${daemon.secret}` }
  const asked = request(new URL('/v1/events', daemon.url), { headers }, (response) => {
    response.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('event: ')) changed()
    })
    response.on('close', end)
  })
  asked.on('error', end)
  asked.end()
  return () => {
    over = true
    asked.destroy()
  }
}

function follow(context: Context, changed: () => void): () => void {
  const store = context.store()
  void store.follow(FOLLOW_MS)
  return store.onCommit(changed, changed)
}
