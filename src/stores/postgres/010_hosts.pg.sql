-- What each host's config.json sets for all who use the store: src/core/host_settings.ts.
CREATE TABLE host_settings (
  key text COLLATE "C" PRIMARY KEY,
  part text COLLATE "C" NOT NULL,
  source text NOT NULL,
  settings json NOT NULL,
  read_ms bigint NOT NULL
);
CREATE INDEX host_settings_of ON host_settings (part, key);

-- What was told by which channel, and what could not be.
ALTER TABLE alert ADD COLUMN delivery json NOT NULL DEFAULT '{}';
