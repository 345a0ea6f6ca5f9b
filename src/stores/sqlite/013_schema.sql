-- From 0.1.0 to the schema of src/core/schema: tables and columns that came since, and columns that
-- follow from others in place of expressions in indexes.

-- Bodies that are here already stay whole in the rows of their tasks.
CREATE TABLE task_text (id TEXT PRIMARY KEY, rest TEXT NOT NULL) STRICT;
ALTER TABLE task ADD COLUMN body_apart INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN touches TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN queue_user TEXT;
UPDATE task SET queue_user = coalesce("user", '') WHERE queue IS NOT NULL AND status = 'todo';
DROP INDEX queue_of;
CREATE INDEX queue_of ON task (queue_user, rank, id) WHERE queue_user IS NOT NULL;

ALTER TABLE lease ADD COLUMN process_key TEXT;
ALTER TABLE lease ADD COLUMN path_base TEXT;
ALTER TABLE lease ADD COLUMN path_scope TEXT;
ALTER TABLE lease ADD COLUMN path_project TEXT;
ALTER TABLE lease ADD COLUMN path_family TEXT;
UPDATE lease SET process_key = (process ->> 'pid') || '/' || (process ->> 'start'),
  path_base = path ->> 'base', path_scope = path ->> 'scope',
  path_project = path ->> 'project', path_family = path ->> 'family';
DROP INDEX leases_seated_at;
CREATE INDEX leases_seated_at ON lease (seat, process_key, name)
  WHERE ended_at IS NULL AND process_key IS NOT NULL AND seat IS NOT NULL;
DROP INDEX reservations;
CREATE INDEX reservations ON lease (path_base, name)
  WHERE ended_at IS NULL AND path_base IS NOT NULL;
DROP INDEX reservations_in;
CREATE INDEX reservations_in ON lease (path_scope, path_base, name)
  WHERE ended_at IS NULL AND path_scope IS NOT NULL;
DROP INDEX reservations_of;
CREATE INDEX reservations_of ON lease (path_project, path_base, name)
  WHERE ended_at IS NULL AND path_project IS NOT NULL;
DROP INDEX reservations_beside;
CREATE INDEX reservations_beside ON lease (path_family, path_base, name)
  WHERE ended_at IS NULL AND path_family IS NOT NULL;

ALTER TABLE ticket ADD COLUMN process_key TEXT;
UPDATE ticket SET process_key = (process ->> 'pid') || '/' || (process ->> 'start');
DROP INDEX tickets_seated_at;
CREATE INDEX tickets_seated_at ON ticket (seat, process_key, id)
  WHERE process_key IS NOT NULL AND seat IS NOT NULL;
DROP INDEX tickets_of;
CREATE INDEX tickets_of ON ticket (node, asked_ms, id) WHERE node IS NOT NULL;
DROP INDEX tickets_under;
CREATE INDEX tickets_under ON ticket (under_node, asked_ms, id) WHERE under_node IS NOT NULL;

ALTER TABLE token ADD COLUMN ends_ms INTEGER;
UPDATE token SET ends_ms = coalesce(expires_ms, 0)
  WHERE expires_ms IS NOT NULL OR revoked_at IS NOT NULL;
DROP INDEX tokens_by_end;
CREATE INDEX tokens_by_end ON token (ends_ms, hash) WHERE ends_ms IS NOT NULL;

ALTER TABLE share ADD COLUMN special INTEGER NOT NULL DEFAULT 0;
UPDATE share SET special = weight <> 1 OR max IS NOT NULL;
DROP INDEX shares_special;
CREATE INDEX shares_special ON share ("user") WHERE special = 1;

ALTER TABLE lane ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
UPDATE lane SET open = ready > 0 AND parked_on IS NULL;
DROP INDEX lanes_of;
CREATE INDEX lanes_of ON lane ("user", head_rank, key) WHERE open = 1;
DROP INDEX lanes_of_group;
CREATE INDEX lanes_of_group ON lane (group_key, head_rank, key)
  WHERE open = 1 AND group_key IS NOT NULL;

ALTER TABLE memory ADD COLUMN has_versions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
UPDATE memory SET has_versions = heads <> '[]', deleted = live = 0 AND heads <> '[]';
DROP INDEX memories_by_age;
CREATE INDEX memories_by_age ON memory (updated_ms, id) WHERE has_versions = 1;
DROP INDEX memories_deleted;
CREATE INDEX memories_deleted ON memory (updated_ms, id) WHERE deleted = 1;
DROP INDEX versions_with_hash;
CREATE INDEX versions_saying ON memory_version (hash, id) WHERE kept = 1;

-- What memory does without: quotas, labels by a chat model, and a row for every job behind a note.
-- Notes are read in the order of their changes, behind a cursor: src/core/memory/background.ts.
DROP TABLE memory_usage;
DROP TABLE memory_settings;
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
ALTER TABLE embedding RENAME TO embedding_before;
CREATE TABLE embedding (
  key TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  since_at TEXT NOT NULL,
  cursor TEXT NOT NULL,
  cursor_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO embedding SELECT key, provider, dimensions, since_at, '',
  iif(cursor IS NULL, coalesce((SELECT max(updated_ms) FROM memory), 0), 0) FROM embedding_before;
DROP TABLE embedding_before;
DROP TABLE background_job;

CREATE TABLE resource (
  key TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  name TEXT NOT NULL,
  offered TEXT NOT NULL,
  projects TEXT NOT NULL,
  lent TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE worktree (
  id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  project TEXT NOT NULL,
  host TEXT NOT NULL,
  repository TEXT NOT NULL,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  base TEXT,
  state TEXT NOT NULL,
  salvage TEXT,
  changed TEXT NOT NULL,
  kept_because TEXT,
  begun_at TEXT NOT NULL,
  left_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX worktrees ON worktree (begun_at, id);
CREATE INDEX worktrees_of ON worktree (task_id, begun_at, id);

CREATE TABLE landing (
  id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  project TEXT NOT NULL,
  target TEXT,
  branch TEXT,
  "commit" TEXT,
  task_id TEXT,
  priority INTEGER NOT NULL,
  rank TEXT NOT NULL,
  status TEXT NOT NULL,
  fence INTEGER,
  base TEXT,
  candidate TEXT,
  reason TEXT,
  paths TEXT NOT NULL,
  output TEXT,
  asked_by TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  ended_at TEXT,
  open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX landings_open ON landing (project, rank, id) WHERE open = 1;
CREATE INDEX landings_newest ON landing (-seq, id);
CREATE INDEX landings_of ON landing (task_id, -seq, id) WHERE task_id IS NOT NULL;
CREATE INDEX landings_ended ON landing (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE TABLE landing_rule (
  project TEXT PRIMARY KEY,
  onto TEXT,
  auto INTEGER NOT NULL,
  checks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;
