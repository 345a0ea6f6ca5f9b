import { int, json, table, text } from './table.ts'

/** The log of events, which only stores look at: see `Event` in src/core/event.ts for its rows. */
export const event = table({
  key: 'position',
  columns: {
    position: int(),
    at: text(),
    type: text(),
    agent: text(),
    lock: text().orNull,
    task: text().orNull,
    data: json(),
    hash: text(),
  },
})
