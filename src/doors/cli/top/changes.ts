import { request } from 'node:http'
import { folderOf } from '../../../stores/open.ts'
import { bearer } from '../../../reach/header_text.ts'
import { type Daemon, findDaemon } from '../../../reach/server_file.ts'
import type { Context } from '../context.ts'

const RECONNECT_MS = 1_000
/** Without a daemon, what others write to the store is looked for this often. */
const FOLLOW_MS = 500

/**
 * Calls `changed` when something has happened that is of interest, by the type of its event, and
 * after every time it could not be known. Looks for a daemon anew when the one it listened to has
 * gone. Returns how to stop.
 */
export function watchChanges(
  context: Context,
  changed: () => void,
  isOfInterest: (type: string) => boolean = () => true,
): () => void {
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
    stop = daemon
      ? listen(daemon, changed, again, isOfInterest)
      : follow(context, changed, isOfInterest)
  }
  connect()
  return () => {
    stopped = true
    clearTimeout(timer)
    stop()
  }
}

/** Only the types of events are read. What a piece of the stream ends in may be half of a line. */
function listen(
  daemon: Daemon,
  changed: () => void,
  ended: () => void,
  isOfInterest: (type: string) => boolean,
): () => void {
  let half = ''
  let over = false
  const end = () => {
    if (!over) ended()
    over = true
  }
  const headers = { authorization: bearer(daemon.secret) }
  const asked = request(new URL('/v1/events', daemon.url), { headers }, (response) => {
    response.setEncoding('utf8').on('data', (text: string) => {
      const lines = (half + text).split('\n')
      half = lines.pop()!
      const types = lines.flatMap((line) => /^event: (.+)$/.exec(line)?.[1] ?? [])
      if (types.some((type) => type === 'reset' || isOfInterest(type))) changed()
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

function follow(
  context: Context,
  changed: () => void,
  isOfInterest: (type: string) => boolean,
): () => void {
  const store = context.store()
  // What was written before it follows is not heard of: it is looked at once more then.
  void store.follow(FOLLOW_MS).then(changed, () => undefined)
  return store.onCommit((events) => {
    if (events.some(({ type }) => isOfInterest(type))) changed()
  }, changed)
}
