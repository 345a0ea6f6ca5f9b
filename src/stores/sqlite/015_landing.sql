-- Branches on their way to a target, and how each project lands: src/core/landing/rows.ts.
CREATE TABLE landing (
  id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  project TEXT NOT NULL,
  target TEXT,
  branch TEXT,
  "commit" TEXT,
  task_id TEXT,
  priority INTEGER NOT NULL,
  rank TEXT NOT NULL,
  status TEXT NOT NULL,
  fence INTEGER,
  base TEXT,
  candidate TEXT,
  reason TEXT,
  paths TEXT NOT NULL,
  output TEXT,
  asked_by TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  ended_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX landings_open ON landing (project, rank, id) WHERE status IN ('waiting', 'landing');
CREATE INDEX landings_newest ON landing (-seq, id);
CREATE INDEX landings_of ON landing (task_id, -seq, id) WHERE task_id IS NOT NULL;
CREATE INDEX landings_ended ON landing (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE TABLE landing_rule (
  project TEXT PRIMARY KEY,
  onto TEXT,
  auto INTEGER NOT NULL,
  checks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 15;
