-- The rows of src/core/rows.ts, column for column, and the indexes of src/core/view.ts.

CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,
  fences INTEGER NOT NULL,
  task_number INTEGER NOT NULL,
  position INTEGER NOT NULL,
  hash TEXT NOT NULL,
  boot TEXT NOT NULL,
  offset_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE task (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  project TEXT,
  "user" TEXT,
  priority INTEGER NOT NULL,
  "group" TEXT,
  labels TEXT NOT NULL,
  depends_on TEXT NOT NULL,
  assigned_to TEXT,
  metadata TEXT NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  assignee TEXT,
  assigned_at TEXT,
  attempts INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  rank INTEGER NOT NULL,
  unmet INTEGER NOT NULL,
  lock_fence INTEGER,
  run_id TEXT
) STRICT;
CREATE INDEX tasks ON task (created_at, id);
CREATE INDEX tasks_with_status ON task (status, rank, id);

CREATE TABLE dependency (
  key TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  depends_on TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX dependents_of ON dependency (depends_on, task_id, key);

CREATE TABLE ready (
  key TEXT PRIMARY KEY,
  scope TEXT NOT NULL,
  rank INTEGER NOT NULL,
  task_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ready_in ON ready (scope, rank, key);

-- One row per lock that was ever granted; the partial indexes hold only those in force.
CREATE TABLE lease (
  name TEXT PRIMARY KEY,
  fence INTEGER NOT NULL,
  holder TEXT NOT NULL,
  holder_given INTEGER NOT NULL,
  process TEXT,
  "group" TEXT,
  seat TEXT,
  acquired_at TEXT NOT NULL,
  acquired_ms INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  ended_at TEXT,
  reason TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_expiry ON lease (expires_ms, name) WHERE ended_at IS NULL;
CREATE INDEX leases_held_by ON lease (holder, name) WHERE ended_at IS NULL;
CREATE INDEX leases_seated_at ON lease (seat, name) WHERE ended_at IS NULL AND seat IS NOT NULL;

CREATE TABLE run (
  id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  fence INTEGER NOT NULL,
  host TEXT,
  pid INTEGER,
  status TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  outcome TEXT
) STRICT, WITHOUT ROWID;
-- Runs are found by their id, which begins with that of their task: no index to keep.

CREATE TABLE ticket (
  id TEXT PRIMARY KEY,
  names TEXT NOT NULL,
  agent TEXT NOT NULL,
  agent_given INTEGER NOT NULL,
  process TEXT,
  stand_in INTEGER NOT NULL,
  node TEXT,
  under_node TEXT,
  priority INTEGER NOT NULL,
  asked_at TEXT NOT NULL,
  asked_ms INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL,
  called_ms INTEGER,
  cycle TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets ON ticket (rank, id);
CREATE INDEX tickets_of ON ticket (node, asked_ms, id);
CREATE INDEX tickets_under ON ticket (under_node, asked_ms, id);

CREATE TABLE place (
  key TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  rank INTEGER NOT NULL,
  ticket_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX line_of ON place (name, rank, key);

CREATE TABLE agent (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  host TEXT,
  pid INTEGER,
  first_seen_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  last_seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE request (
  key TEXT PRIMARY KEY,
  input_hash TEXT NOT NULL,
  reply TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_by_age ON request (at_ms, key);

CREATE TABLE event (
  position INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  agent TEXT NOT NULL,
  lock TEXT,
  task TEXT,
  data TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;

-- Where the chain begins once old events were pruned: the last one before those that are left.
CREATE TABLE checkpoint (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;

PRAGMA user_version = 1;
