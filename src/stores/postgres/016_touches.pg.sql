-- What a task will change, as globs: src/core/paths/foreseen.ts.
ALTER TABLE task ADD COLUMN touches json NOT NULL DEFAULT '[]';
