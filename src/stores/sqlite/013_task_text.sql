-- What is behind the beginning of a long body: src/core/tasks/body.ts. Bodies that are here already
-- stay whole in the rows of their tasks. With row ids, as memory_text has them.
CREATE TABLE task_text (
  id TEXT PRIMARY KEY,
  rest TEXT NOT NULL
) STRICT;
ALTER TABLE task ADD COLUMN body_apart INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 13;
