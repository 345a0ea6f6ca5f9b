-- What each host's config.json sets for all who use the store: src/core/host_settings.ts.
CREATE TABLE host_settings (
  key TEXT PRIMARY KEY,
  part TEXT NOT NULL,
  source TEXT NOT NULL,
  settings TEXT NOT NULL,
  read_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX host_settings_of ON host_settings (part, key);

-- What was told by which channel, and what could not be.
ALTER TABLE alert ADD COLUMN delivery TEXT NOT NULL DEFAULT '{}';

PRAGMA user_version = 11;
