-- What memory does without: quotas, labels by a chat model, and a row for every job behind a note.
-- Notes are read in the order of their changes, behind a cursor: src/core/memory/background.ts.
DROP TABLE memory_usage;
ALTER TABLE memory_settings DROP COLUMN quotas;
UPDATE duplicate SET label = NULL WHERE label <> 'contradicts';

CREATE TABLE note_attempt (
  memory_id text COLLATE "C" PRIMARY KEY,
  state text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL,
  next_ms bigint NOT NULL,
  error text,
  asked_at text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX note_attempts ON note_attempt (state, next_ms, memory_id);

-- Where all notes were asked for, what is left of them goes on; else all are looked at again.
INSERT INTO note_attempt
  SELECT subject, CASE state WHEN 'dead' THEN state ELSE 'waiting' END,
    CASE state WHEN 'dead' THEN attempts ELSE 0 END, next_ms, error, asked_at
  FROM background_job
  WHERE kind <> 'label' AND EXISTS (SELECT 1 FROM embedding WHERE cursor IS NULL)
  ON CONFLICT DO NOTHING;
ALTER TABLE embedding ADD COLUMN cursor_ms bigint NOT NULL DEFAULT 0;
UPDATE embedding SET cursor_ms = coalesce((SELECT max(updated_ms) FROM memory), 0)
  WHERE cursor IS NULL;
UPDATE embedding SET cursor = '';
DROP TABLE background_job;
