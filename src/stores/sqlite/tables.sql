-- What a new database has beside the tables of src/core/schema.

CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,
  fences INTEGER NOT NULL,
  task_number INTEGER NOT NULL,
  position INTEGER NOT NULL,
  hash TEXT NOT NULL,
  boot TEXT NOT NULL,
  offset_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  -- What the rows of each table add up to: src/stores/sqlite/sums.ts. In the row that every commit
  -- writes anyway: a page of its own would cost 4 KB per commit.
  sums TEXT NOT NULL
) STRICT;

-- Where the chain begins once old events were pruned: the last one before those that are left.
CREATE TABLE checkpoint (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;

-- A number for each note, the newest change the highest: the index of words knows numbers only.
CREATE TABLE memory_row (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

-- The text itself is in memory_text, and not kept twice.
CREATE VIRTUAL TABLE memory_words USING fts5(
  scope, key, tags, content,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
