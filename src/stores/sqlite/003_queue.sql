-- The queue: shares of users, lanes of ready tasks, limits, dispatchers and what runs remember.

ALTER TABLE task ADD COLUMN queue TEXT;
CREATE INDEX queue_of ON task (coalesce("user", ''), rank, id)
  WHERE queue IS NOT NULL AND status = 'todo';

-- Keys now begin with scope and rank: the table is its own index.
ALTER TABLE ready ADD COLUMN high INTEGER NOT NULL DEFAULT 0;
DROP INDEX ready_in;
UPDATE ready SET key = scope || char(10) || (1000000000000000 + rank) || char(10) || task_id,
  high = (SELECT priority >= 7 FROM task WHERE id = task_id);

ALTER TABLE lease ADD COLUMN terms TEXT;

ALTER TABLE run ADD COLUMN dispatcher TEXT;
ALTER TABLE run ADD COLUMN begun_at TEXT;
ALTER TABLE run ADD COLUMN exit_code INTEGER;
ALTER TABLE run ADD COLUMN signal TEXT;
CREATE INDEX runs_newest ON run (-fence, id) WHERE dispatcher IS NOT NULL;
CREATE INDEX runs_dispatched_by ON run (dispatcher, id)
  WHERE ended_at IS NULL AND dispatcher IS NOT NULL;

CREATE TABLE share (
  "user" TEXT PRIMARY KEY,
  weight REAL NOT NULL,
  max INTEGER,
  running TEXT NOT NULL,
  pending INTEGER NOT NULL,
  pending_high INTEGER NOT NULL,
  waits INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  vt REAL NOT NULL,
  run_ms REAL,
  paused INTEGER NOT NULL,
  "group" TEXT,
  lanes INTEGER NOT NULL,
  next_lane TEXT,
  next_task TEXT,
  next_high INTEGER NOT NULL,
  turn TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX shares_in_turn ON share (turn, vt, "user") WHERE turn IS NOT NULL;
-- Not by "pending > 0": an index is touched whenever a column that it names is written.
CREATE INDEX shares_waiting ON share ("user") WHERE waits = 1;
CREATE INDEX shares_special ON share ("user") WHERE weight <> 1 OR max IS NOT NULL;

CREATE TABLE lane (
  key TEXT PRIMARY KEY,
  "user" TEXT NOT NULL,
  project TEXT,
  "group" TEXT,
  group_key TEXT,
  ready INTEGER NOT NULL,
  head_rank INTEGER,
  head_task TEXT,
  head_high INTEGER NOT NULL,
  parked_on TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_of ON lane ("user", head_rank, key) WHERE ready > 0 AND parked_on IS NULL;
CREATE INDEX lanes_of_group ON lane (group_key, head_rank, key)
  WHERE ready > 0 AND parked_on IS NULL AND group_key IS NOT NULL;
CREATE INDEX lanes_parked_at ON lane (parked_on || char(10) || "user", head_rank, key)
  WHERE parked_on IS NOT NULL;

CREATE TABLE parking (
  key TEXT PRIMARY KEY,
  "limit" TEXT NOT NULL,
  "user" TEXT NOT NULL,
  vt REAL NOT NULL,
  turn TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX parkings_of ON parking ("user", "limit", key);
CREATE INDEX parkings_at ON parking ("limit" || char(10) || turn, vt, key);

CREATE TABLE "limit" (
  key TEXT PRIMARY KEY,
  max INTEGER,
  used INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  parked INTEGER NOT NULL,
  wakes TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX limits_waking ON "limit" (wakes, key) WHERE wakes IS NOT NULL;

CREATE TABLE queue (
  key TEXT PRIMARY KEY,
  vclock REAL NOT NULL,
  high_streak INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  user_max INTEGER,
  lock_timeout_ms INTEGER NOT NULL,
  run_ms REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE dispatcher (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  slots_max INTEGER NOT NULL,
  projects TEXT NOT NULL,
  started_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
