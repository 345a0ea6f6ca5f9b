-- What memory does without: quotas, labels by a chat model, and a row for every job behind a note.
-- Notes are read in the order of their changes, behind a cursor: src/core/memory/background.ts.
DROP TABLE memory_usage;
ALTER TABLE memory_settings DROP COLUMN quotas;
UPDATE duplicate SET label = NULL WHERE label <> 'contradicts';

CREATE TABLE note_attempt (
  memory_id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  next_ms INTEGER NOT NULL,
  error TEXT,
  asked_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX note_attempts ON note_attempt (state, next_ms, memory_id);

-- Where all notes were asked for, what is left of them goes on; else all are looked at again.
INSERT OR IGNORE INTO note_attempt
  SELECT subject, iif(state = 'dead', 'dead', 'waiting'), iif(state = 'dead', attempts, 0), next_ms,
    error, asked_at
  FROM background_job
  WHERE kind <> 'label' AND EXISTS (SELECT 1 FROM embedding WHERE cursor IS NULL);
ALTER TABLE embedding ADD COLUMN cursor_ms INTEGER NOT NULL DEFAULT 0;
UPDATE embedding SET cursor_ms = coalesce((SELECT max(updated_ms) FROM memory), 0)
  WHERE cursor IS NULL;
UPDATE embedding SET cursor = '';
DROP TABLE background_job;

PRAGMA user_version = 17;
