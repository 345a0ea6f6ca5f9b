-- Finding notes: an index of their words, vectors of what they mean, and what is done behind them.

-- A number for each note, the newest change the highest: the index of words knows numbers only.
CREATE TABLE memory_row (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

-- The text itself is in memory_text, and not kept twice.
CREATE VIRTUAL TABLE memory_words USING fts5(
  scope, key, tags, content,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE background_job (
  key TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  next_ms INTEGER NOT NULL,
  fence INTEGER,
  error TEXT,
  asked_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX background_jobs_due ON background_job (kind, next_ms, key) WHERE state = 'waiting';
CREATE INDEX background_jobs_in ON background_job (state, key) WHERE state <> 'waiting';

CREATE TABLE vector (
  key TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  hash TEXT NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE embedding (
  key TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  since_at TEXT NOT NULL,
  cursor TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE duplicate (
  id TEXT PRIMARY KEY,
  a TEXT NOT NULL,
  b TEXT NOT NULL,
  similarity REAL NOT NULL,
  label TEXT,
  status TEXT NOT NULL,
  action TEXT,
  found_at TEXT NOT NULL,
  resolved_by TEXT,
  resolved_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX duplicates_with ON duplicate (status, -similarity, id);
CREATE INDEX duplicates_of ON duplicate (a, id);
CREATE INDEX duplicates_to ON duplicate (b, id);

-- Which vectors are still of some note.
CREATE INDEX versions_with_hash ON memory_version (hash);

INSERT INTO memory_row (id) SELECT id FROM memory WHERE live = 1 ORDER BY updated_ms;
INSERT INTO memory_words (rowid, scope, key, tags, content)
  SELECT number, scope, key, tags,
    (SELECT group_concat(substr(content, 1, 65536), char(10)) FROM json_each(heads)
       JOIN memory_text AS t ON t.id = memory.id || char(10) || json_each.value)
  FROM memory_row JOIN memory USING (id);
INSERT INTO background_job
  SELECT 'embed' || char(10) || id, 'embed', id, 'waiting', 0, 0, NULL, NULL, updated_at
  FROM memory WHERE live = 1;

PRAGMA user_version = 7;
