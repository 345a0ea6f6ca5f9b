import { EventEmitter, once } from 'node:events'
import { VERSION } from '../machine/version.ts'
import { call } from '../operations/call.ts'
import { LeaderFollower } from '../reach/leader.ts'
import { eventId, eventPlace } from '../stores/writer/event_place.ts'
import { openStore, type Place } from '../stores/open.ts'
import type { Store } from '../stores/writer/store.ts'
import type { Question, Told, Transport } from './transport.ts'

const PAGE = 500
/** How often commits of other processes are looked for while somebody listens to events. */
const FOLLOW_MS = 100

/** The store itself, opened in this process. */
export class EmbeddedTransport implements Transport {
  readonly isLocal = true
  readonly place: string
  private readonly store: Store
  /** On a database that machines share, the daemon that leads decides for us, too. */
  private readonly follower: LeaderFollower | undefined

  constructor(place: Place) {
    this.store = openStore(place)
    this.place = place.path
    this.follower = this.store.leaders && new LeaderFollower(this.store, VERSION)
    this.store.leader = this.follower
  }

  ask({ operation, input, caller, signal }: Question): Promise<unknown> {
    return call(this.store, operation, input, caller, signal)
  }

  async *stream(after: string | undefined, signal: AbortSignal): AsyncGenerator<Told> {
    await this.store.follow(FOLLOW_MS)
    const commits = new EventEmitter()
    let isReplaced = false
    const news = () => commits.emit('news')
    const deaf = this.store.onCommit(news, () => {
      isReplaced = true
      news()
    })
    try {
      const { epoch, reset, ...from } = await eventPlace(this.store, after)
      let { position } = from
      yield { id: eventId(epoch, position), what: reset ? 'reset' : 'begin', event: null }
      // When the store was replaced the stream ends, and the next one learns what became of it.
      while (!isReplaced && !signal.aborted) {
        const told = once(commits, 'news', { signal })
        told.catch(() => undefined)
        const events = await this.store.events(position, PAGE)
        if (events[0] && events[0].position !== position + 1) return
        for (const { hash: _hash, ...event } of events) {
          position = event.position
          yield { id: eventId(epoch, position), what: 'event', event }
        }
        if (events.length === 0) await told
      }
    } finally {
      deaf()
    }
  }

  close(): Promise<void> {
    this.follower?.close()
    return this.store.close()
  }
}
