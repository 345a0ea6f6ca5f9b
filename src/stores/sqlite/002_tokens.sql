-- Who may come in through a door, by the hash of a secret.

CREATE TABLE token (
  hash TEXT PRIMARY KEY,
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  agent TEXT,
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  expires_ms INTEGER,
  revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens ON token (created_at, hash);

PRAGMA user_version = 2;
