-- What a task will change, as globs: src/core/paths/foreseen.ts.
ALTER TABLE task ADD COLUMN touches TEXT NOT NULL DEFAULT '[]';

PRAGMA user_version = 16;
