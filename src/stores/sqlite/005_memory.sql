-- Shared memory: notes, their versions and texts, conflicts, what is used, and how to merge.

CREATE TABLE memory (
  id TEXT PRIMARY KEY,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  heads TEXT NOT NULL,
  live INTEGER NOT NULL,
  author TEXT NOT NULL,
  confidence REAL,
  tags TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  updated_ms INTEGER NOT NULL,
  expires_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX memories ON memory (id) WHERE live = 1;
CREATE INDEX memories_in ON memory (scope, key, id) WHERE live = 1;
CREATE INDEX memories_by_age ON memory (updated_ms, id) WHERE heads <> '[]';
CREATE INDEX memories_by_expiry ON memory (expires_ms, id)
  WHERE live = 1 AND expires_ms IS NOT NULL;

CREATE TABLE memory_version (
  id TEXT PRIMARY KEY,
  memory_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  parents TEXT NOT NULL,
  kind TEXT NOT NULL,
  strategy TEXT,
  author TEXT NOT NULL,
  task_id TEXT,
  fence INTEGER,
  confidence REAL,
  tags TEXT NOT NULL,
  hash TEXT NOT NULL,
  size INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_of ON memory_version (memory_id, -version, id);

-- With row ids: a text may be a megabyte, and a tree of such keys would be mostly empty pages.
CREATE TABLE memory_text (
  id TEXT PRIMARY KEY,
  content TEXT NOT NULL
) STRICT;

CREATE TABLE memory_conflict (
  id TEXT PRIMARY KEY,
  memory_id TEXT NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  ours INTEGER NOT NULL,
  theirs INTEGER NOT NULL,
  base INTEGER,
  status TEXT NOT NULL,
  strategy TEXT NOT NULL,
  why TEXT,
  opened_by TEXT NOT NULL,
  opened_at TEXT NOT NULL,
  opened_ms INTEGER NOT NULL,
  closed_by TEXT,
  closed_at TEXT,
  result INTEGER,
  replaced_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX conflicts ON memory_conflict (status, opened_ms, id);
CREATE INDEX conflicts_of ON memory_conflict (memory_id, opened_ms, id);

CREATE TABLE memory_usage (
  key TEXT PRIMARY KEY,
  versions INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_settings (
  key TEXT PRIMARY KEY,
  strategies TEXT NOT NULL,
  quotas TEXT NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
