import { readFileSync } from 'node:fs'
import { event } from '../../core/schema/event.ts'
import { SCHEMA, type TableName, TABLES } from '../../core/schema/schema.ts'
import { makingTexts } from '../sql.ts'
import { POSTGRES } from './codec.ts'

const OFTEN = 'autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500'
const ALWAYS = 'autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200'

/** Rows that change with every claim leave room for their next version on the same page. */
const ROOM: { [T in TableName]?: string } = {
  task: 'fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02',
  ready: OFTEN,
  lease: `fillfactor = 50, ${OFTEN}`,
  run: 'fillfactor = 80',
  ticket: 'fillfactor = 50',
  agent: 'fillfactor = 50',
  share: `fillfactor = 50, ${OFTEN}`,
  lane: `fillfactor = 50, ${OFTEN}`,
  parking: `fillfactor = 50, ${OFTEN}`,
  limit: `fillfactor = 30, ${ALWAYS}`,
  queue: `fillfactor = 10, ${ALWAYS}`,
  memory: 'fillfactor = 80',
  stat: `fillfactor = 10, ${ALWAYS}`,
  note_attempt: 'fillfactor = 50',
}

/** The statements that make the tables and indexes of a new schema. */
export function tableTexts(): string[] {
  return [
    readFileSync(new URL('tables.pg.sql', import.meta.url), 'utf8'),
    ...makingTexts(POSTGRES, 'event', event),
    ...TABLES.flatMap((name) => {
      const room = ROOM[name]
      return makingTexts(POSTGRES, name, SCHEMA[name], room && `WITH (${room})`)
    }),
  ]
}
