-- What happened, counted: src/core/stat.ts. One row is written with every commit that has events.
CREATE TABLE stat (
  key TEXT PRIMARY KEY,
  scale TEXT NOT NULL,
  start_at TEXT NOT NULL,
  counts TEXT NOT NULL
) STRICT;
CREATE INDEX stats_of ON stat (scale, start_at, key);

CREATE TABLE alert (
  key TEXT PRIMARY KEY,
  rule TEXT NOT NULL,
  subject TEXT NOT NULL,
  message TEXT NOT NULL,
  since_at TEXT NOT NULL,
  quiet_ms INTEGER,
  ended_at TEXT,
  told INTEGER NOT NULL,
  told_end INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts ON alert (since_at, key);

PRAGMA user_version = 6;
