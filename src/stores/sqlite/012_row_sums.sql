-- What the rows of each table add up to: src/stores/sqlite/sums.ts. In the row that every commit
-- writes anyway: a page of its own would cost 4 KB per commit. Filled in behind the scripts.
ALTER TABLE head ADD COLUMN sums TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 12;
