import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../src/stores/sqlite/driver.ts'

/** One way to damage a store that nobody has open, and who finds it. */
export interface Damage {
  name: string
  store: 'sqlite' | 'file'
  /** `mark`: nothing but the highest fence ever given, kept outside of the store, can tell. */
  found: 'check' | 'mark' | 'harmless'
  /** Of the folder that holds `leasehold.db`, or the numbered states. */
  damage: (folder: string) => void
}

const fileIn = (folder: string) => join(folder, 'leasehold.db')

/** Everything goes into the one file first, as after an ordinary end. */
function settled(folder: string, use: (db: Database) => void): void {
  const db = openDatabase(fileIn(folder), { readOnly: false })
  db.exec('PRAGMA foreign_keys = OFF')
  use(db)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

type Text = string | ((db: Database) => string)

const sql = (name: string, text: Text, found: Damage['found'] = 'check'): Damage => ({
  name,
  store: 'sqlite',
  found,
  damage: (folder) => settled(folder, (db) => db.exec(typeof text === 'string' ? text : text(db))),
})

/** All columns that a task has today, so that a new one does not spoil the damage. */
function copiedTask(db: Database, from: string, to: string): string {
  const columns = db.prepare('PRAGMA table_info(task)').all() as { name: string }[]
  const names = columns.map(({ name }) => `"${name}"`)
  const values = names.map((name) => (name === '"id"' ? `'${to}'` : name))
  return `INSERT INTO task (${names.join()}) SELECT ${values.join()} FROM task WHERE id = '${from}'`
}

const bytes = (name: string, change: (file: string) => void, found: Damage['found'] = 'check') =>
  ({
    name,
    store: 'sqlite',
    found,
    damage: (folder) => {
      settled(folder, () => undefined)
      change(fileIn(folder))
      for (const side of ['-wal', '-shm']) rmSync(fileIn(folder) + side, { force: true })
    },
  }) satisfies Damage

function overwrite(file: string, at: number, what: Buffer): void {
  const fd = openSync(file, 'r+')
  writeSync(fd, what, 0, what.length, at)
  closeSync(fd)
}

const PAGE = 4096

/** The first page of a table or an index. */
const page = (object: string, what: () => Buffer, how: string): Damage => ({
  name: `the page of ${object} is ${how}`,
  store: 'sqlite',
  found: 'check',
  damage: (folder) => {
    let root = 0
    settled(folder, (db) => {
      const row = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(object)
      root = Number(row!['rootpage'])
    })
    overwrite(fileIn(folder), (root - 1) * PAGE, what())
  },
})

const garbage = () => randomBytes(PAGE)
const zeros = () => Buffer.alloc(PAGE)

const PAGES = [
  ...['task', 'lease', 'run', 'event', 'head', 'ready', 'memory', 'memory_text', 'request'].map(
    (table) => page(table, garbage, 'overwritten'),
  ),
  ...['tasks', 'leases_by_expiry', 'requests_by_age'].map((index) =>
    page(index, garbage, 'overwritten'),
  ),
  ...['task', 'lease', 'event', 'head'].map((table) => page(table, zeros, 'zeroed')),
  bytes('the magic of the header is gone', (file) => overwrite(file, 0, Buffer.from('NotSQLite'))),
  bytes('the page size is nonsense', (file) => overwrite(file, 16, Buffer.from([3, 3]))),
  bytes('the count of free pages is wrong', (file) =>
    overwrite(file, 36, Buffer.from([0, 0, 9, 9])),
  ),
  bytes('the schema has another number', (file) => overwrite(file, 60, Buffer.from([0, 0, 0, 3]))),
  bytes('the schema has no number', (file) => overwrite(file, 60, Buffer.from([0, 0, 0, 0]))),
  bytes('the file is garbage', (file) => writeFileSync(file, randomBytes(20_000))),
  bytes('the file is cut in half', (file) => truncateSync(file, readFileSync(file).length >> 1)),
  bytes('the last page is missing', (file) => truncateSync(file, readFileSync(file).length - PAGE)),
  bytes('all behind half a page is missing', (file) =>
    truncateSync(file, PAGE * Math.floor(readFileSync(file).length / PAGE / 2) + 2_000),
  ),
  bytes('the file is empty', (file) => truncateSync(file, 0), 'mark'),
  bytes('the file is gone', (file) => rmSync(file), 'mark'),
]

const ROWS = [
  sql('the title of a task was edited', `UPDATE task SET title = 'Other' WHERE id = 'a'`),
  sql('the body of a task was edited', `UPDATE task SET body = 'rm' WHERE id = 'a'`),
  sql('the status of a task was edited', `UPDATE task SET status = 'done' WHERE id = 'a'`),
  sql('the priority of a task was edited', `UPDATE task SET priority = 9 WHERE id = 'done'`),
  sql('a task that was done is to do', `UPDATE task SET status = 'todo' WHERE id = 'done'`),
  sql('a task was deleted', `DELETE FROM task WHERE id = 'done'`),
  sql('a ready task was deleted', `DELETE FROM task WHERE id = 'a'`),
  sql('a task was invented', (db) => copiedTask(db, 'done', 'new')),
  sql('the holder of a lease was edited', `UPDATE lease SET holder = 'eve' WHERE name = 'held'`),
  sql('the expiry of a lease was edited', `UPDATE lease SET expires_ms = 1 WHERE name = 'held'`),
  sql('a lease was ended', `UPDATE lease SET ended_at = 'now' WHERE name = 'held'`),
  sql('the fence of a lease was lowered', `UPDATE lease SET fence = 1 WHERE name = 'held'`),
  sql('the fence of a lease was raised', `UPDATE lease SET fence = fence + 99 WHERE name = 'held'`),
  sql('a lease was deleted', `DELETE FROM lease WHERE name = 'held'`),
  sql('a lease was renamed', `UPDATE lease SET name = 'other' WHERE name = 'held'`),
  sql('a run was edited', `UPDATE run SET outcome = 'lost' WHERE id LIKE 'done.%'`),
  sql('a run was deleted', 'DELETE FROM run'),
  sql('a ready row was deleted', 'DELETE FROM ready'),
  sql(
    'a ready row was invented',
    `INSERT INTO ready VALUES ('any' || char(10) || '1', 'any', 1, 'done', 0)`,
  ),
  sql('the rank of a ready row was edited', 'UPDATE ready SET rank = rank - 1'),
  sql('a reply was edited', `UPDATE request SET reply = '{}'`),
  sql('replies were deleted', 'DELETE FROM request'),
  sql('a dependency was deleted', 'DELETE FROM dependency'),
  sql('a token got another role', `UPDATE token SET role = 'admin'`),
  sql('a token was deleted', 'DELETE FROM token'),
  sql('a revoked token counts again', 'UPDATE token SET revoked_at = NULL'),
  sql('a limit was raised', 'UPDATE "limit" SET max = 99'),
  sql('what a limit counts was edited', 'UPDATE "limit" SET used = used + 1'),
  sql('the virtual time of a user was edited', 'UPDATE share SET vt = vt + 1'),
  sql('a share was deleted', 'DELETE FROM share'),
  sql('a lane was edited', 'UPDATE lane SET ready = ready + 1'),
  sql('a lane was deleted', 'DELETE FROM lane'),
  sql('the settings of the queue were edited', 'UPDATE queue SET user_max = 7'),
  sql('the text of a note was edited', `UPDATE memory_text SET content = 'port 1'`),
  sql('the text of a note was deleted', 'DELETE FROM memory_text'),
  sql('a version of a note was edited', `UPDATE memory_version SET author = 'eve'`),
  sql('a version of a note was deleted', 'DELETE FROM memory_version'),
  sql('the head of a note was edited', `UPDATE memory SET heads = '[9]'`),
  sql('a note was deleted', 'DELETE FROM memory'),
  sql('labels are no JSON', `UPDATE task SET labels = '[' WHERE id = 'a'`),
  sql('the process of a lease is no JSON', `UPDATE lease SET process = 'x' WHERE name = 'held'`),
  sql('when an agent was seen was edited', 'UPDATE agent SET last_seen_ms = 1', 'harmless'),
  sql('a count was edited', `UPDATE stat SET start_at = start_at || ''`, 'harmless'),
]

const EVENTS = [
  sql('an event was deleted', 'DELETE FROM event WHERE position = 3'),
  sql('an event was edited', `UPDATE event SET agent = 'eve' WHERE position = 3`),
  sql('the data of an event are no JSON', `UPDATE event SET data = '{' WHERE position = 3`),
  sql(
    'two events were swapped',
    `UPDATE event SET position = -1 WHERE position = 3;
    UPDATE event SET position = 3 WHERE position = 4;
    UPDATE event SET position = 4 WHERE position = -1`,
  ),
  sql('the newest events were deleted', 'DELETE FROM event WHERE position > 5'),
  sql(
    'an event was invented',
    `INSERT INTO event SELECT position + 1, at, type, agent, lock, task,
    data, hash FROM event ORDER BY position DESC LIMIT 1`,
  ),
  sql('the checkpoint was edited', 'UPDATE checkpoint SET position = 2'),
  sql('the head is gone', 'DELETE FROM head'),
  sql('fences were lowered', 'UPDATE head SET fences = 0'),
  sql('the epoch was lowered', 'UPDATE head SET epoch = epoch - 1'),
  sql('the position was lowered', 'UPDATE head SET position = position - 1'),
  sql('the number of tasks was lowered', 'UPDATE head SET task_number = task_number - 1'),
  sql('the clock was moved', 'UPDATE head SET last_ms = last_ms + 1000000'),
  sql('the sums are gone', `UPDATE head SET sums = ''`),
]

const SCHEMA = [
  sql('an index is missing', 'DROP INDEX leases_by_expiry'),
  sql('the table of ready tasks is missing', 'DROP TABLE ready'),
  sql('the table of events is missing', 'DROP TABLE event'),
  sql('the table of leases is missing', 'DROP TABLE lease'),
  sql('the table of notes is missing', 'DROP TABLE memory'),
  sql('the index of words is missing', 'DROP TABLE memory_words'),
  page('memory_words_data', garbage, 'overwritten'),
  sql('notes are in no index of words', 'DELETE FROM memory_row'),
  sql('a column is missing', 'ALTER TABLE run DROP COLUMN signal'),
  sql('there is a trigger', `CREATE TRIGGER theirs AFTER INSERT ON task BEGIN SELECT 1; END`),
  sql('there is a table of somebody else', 'CREATE TABLE theirs (id)', 'harmless'),
]

/** Paths of the states, the newest first. */
function states(folder: string): string[] {
  const numbers = readdirSync(folder).flatMap((name) => {
    const number = /^state\.(\d+)\.json$/.exec(name)?.[1]
    return number === undefined ? [] : [Number(number)]
  })
  return numbers.toSorted((a, b) => b - a).map((number) => join(folder, `state.${number}.json`))
}

const file = (
  name: string,
  change: (newest: string, older: string, folder: string) => void,
  found: Damage['found'] = 'check',
): Damage => ({
  name: `file: ${name}`,
  store: 'file',
  found,
  damage: (folder) => {
    const [newest, older] = states(folder)
    change(newest!, older!, folder)
  },
})

const edited = (path: string, from: string, to: string) =>
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(from, to))

const FILES = [
  file('the newest state is cut', (path) => truncateSync(path, readFileSync(path).length >> 1)),
  file('the newest state has lost its end', (path) =>
    truncateSync(path, readFileSync(path).length - 1),
  ),
  file('the newest state is empty', (path) => truncateSync(path, 0)),
  file('the newest state is zeroed', (path) => writeFileSync(path, Buffer.alloc(5000))),
  file('a holder was edited', (path) => edited(path, '"holder":"ada"', '"holder":"eve"')),
  file('a lease was removed', (path) => edited(path, '"name":"held"', '"name":"heid"')),
  file('the newest state is an older one', (path, older) => {
    writeFileSync(path, readFileSync(older))
  }),
  file('the newest state is a link', (path, older) => {
    renameSync(path, `${path}.moved`)
    symlinkSync(older, path)
  }),
  file('the newest state is a folder', (path) => {
    rmSync(path)
    mkdirSync(path)
  }),
  file('no state is good', (_newest, _older, folder) => {
    for (const path of states(folder)) writeFileSync(path, '{')
  }),
  file('an older state is spoilt', (_, older) => writeFileSync(older, '{')),
  file('the newest state is gone', (path) => rmSync(path), 'mark'),
  file(
    'the lock file is nonsense',
    (_newest, _older, folder) => writeFileSync(join(folder, 'write.lock'), 'nonsense'),
    'harmless',
  ),
]

const walOf = (folder: string) => `${fileIn(folder)}-wal`

/** A log as a kill leaves it: what is cut off reads as if it had never been written. */
const WAL: Damage[] = [
  ['gone', (path: string) => rmSync(path, { force: true })],
  ['cut in half', (path: string) => truncateSync(path, readFileSync(path).length >> 1)],
  ['zeroed', (path: string) => writeFileSync(path, Buffer.alloc(readFileSync(path).length))],
  ['flipped', (path: string) => overwrite(path, 40, randomBytes(64))],
].map(([how, change]) => ({
  name: `the log is ${how as string}`,
  store: 'sqlite',
  found: 'mark',
  damage: (folder) => {
    if (existsSync(walOf(folder))) (change as (path: string) => void)(walOf(folder))
  },
}))

export const DAMAGES: Damage[] = [...PAGES, ...ROWS, ...EVENTS, ...SCHEMA, ...FILES, ...WAL]
