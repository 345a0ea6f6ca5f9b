-- From 0.1.0 to the schema of src/core/schema: tables and columns that came since, and columns that
-- follow from others in place of expressions in indexes.

-- Bodies that are here already stay whole in the rows of their tasks.
CREATE TABLE task_text (id text PRIMARY KEY, rest text NOT NULL);
ALTER TABLE task ADD COLUMN body_apart bigint NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN touches json NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN queue_user text;
UPDATE task SET queue_user = coalesce("user", '') WHERE queue IS NOT NULL AND status = 'todo';
DROP INDEX queue_of;
CREATE INDEX queue_of ON task (queue_user, rank, id) WHERE queue_user IS NOT NULL;

ALTER TABLE lease ADD COLUMN process_key text;
ALTER TABLE lease ADD COLUMN path_base text;
ALTER TABLE lease ADD COLUMN path_scope text;
ALTER TABLE lease ADD COLUMN path_project text;
ALTER TABLE lease ADD COLUMN path_family text;
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

ALTER TABLE ticket ADD COLUMN process_key text;
UPDATE ticket SET process_key = (process ->> 'pid') || '/' || (process ->> 'start');
DROP INDEX tickets_seated_at;
CREATE INDEX tickets_seated_at ON ticket (seat, process_key, id)
  WHERE process_key IS NOT NULL AND seat IS NOT NULL;
DROP INDEX tickets_of;
CREATE INDEX tickets_of ON ticket (node, asked_ms, id) WHERE node IS NOT NULL;
DROP INDEX tickets_under;
CREATE INDEX tickets_under ON ticket (under_node, asked_ms, id) WHERE under_node IS NOT NULL;

ALTER TABLE token ADD COLUMN ends_ms bigint;
UPDATE token SET ends_ms = coalesce(expires_ms, 0)
  WHERE expires_ms IS NOT NULL OR revoked_at IS NOT NULL;
DROP INDEX tokens_by_end;
CREATE INDEX tokens_by_end ON token (ends_ms, hash) WHERE ends_ms IS NOT NULL;

ALTER TABLE share ADD COLUMN special boolean NOT NULL DEFAULT false;
UPDATE share SET special = weight <> 1 OR max IS NOT NULL;
DROP INDEX shares_special;
CREATE INDEX shares_special ON share ("user") WHERE special;

ALTER TABLE lane ADD COLUMN open boolean NOT NULL DEFAULT false;
UPDATE lane SET open = ready > 0 AND parked_on IS NULL;
DROP INDEX lanes_of;
CREATE INDEX lanes_of ON lane ("user", head_rank, key) WHERE open;
DROP INDEX lanes_of_group;
CREATE INDEX lanes_of_group ON lane (group_key, head_rank, key)
  WHERE open AND group_key IS NOT NULL;

ALTER TABLE memory ADD COLUMN has_versions boolean NOT NULL DEFAULT false;
ALTER TABLE memory ADD COLUMN deleted boolean NOT NULL DEFAULT false;
UPDATE memory SET has_versions = heads::text <> '[]',
  deleted = NOT live AND heads::text <> '[]';
DROP INDEX memories_by_age;
CREATE INDEX memories_by_age ON memory (updated_ms, id) WHERE has_versions;
DROP INDEX memories_deleted;
CREATE INDEX memories_deleted ON memory (updated_ms, id) WHERE deleted;
DROP INDEX versions_with_hash;
CREATE INDEX versions_saying ON memory_version (hash, id) WHERE kept;

-- What memory does without: quotas, labels by a chat model, and a row for every job behind a note.
-- Notes are read in the order of their changes, behind a cursor: src/core/memory/background.ts.
DROP TABLE memory_usage;
DROP TABLE memory_settings;
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
ALTER TABLE embedding ALTER COLUMN cursor SET NOT NULL;
DROP TABLE background_job;

CREATE TABLE resource (
  key text PRIMARY KEY,
  host text NOT NULL,
  name text NOT NULL,
  offered json NOT NULL,
  projects json NOT NULL,
  lent json NOT NULL
);

CREATE TABLE worktree (
  id text PRIMARY KEY,
  task_id text NOT NULL,
  run_id text NOT NULL,
  fence bigint NOT NULL,
  project text NOT NULL,
  host text NOT NULL,
  repository text NOT NULL,
  path text NOT NULL,
  branch text NOT NULL,
  base text,
  state text NOT NULL,
  salvage json,
  changed json NOT NULL,
  kept_because text,
  begun_at text NOT NULL,
  left_at text
);
CREATE INDEX worktrees ON worktree (begun_at, id);
CREATE INDEX worktrees_of ON worktree (task_id, begun_at, id);

CREATE TABLE landing (
  id text PRIMARY KEY,
  seq bigint NOT NULL,
  project text NOT NULL,
  target text,
  branch text,
  "commit" text,
  task_id text,
  priority bigint NOT NULL,
  rank text NOT NULL,
  status text NOT NULL,
  fence bigint,
  base text,
  candidate text,
  reason text,
  paths json NOT NULL,
  output text,
  asked_by text NOT NULL,
  asked_at text NOT NULL,
  ended_at text,
  open boolean NOT NULL
);
CREATE INDEX landings_open ON landing (project, rank, id) WHERE open;
CREATE INDEX landings_newest ON landing ((-seq), id);
CREATE INDEX landings_of ON landing (task_id, (-seq), id) WHERE task_id IS NOT NULL;
CREATE INDEX landings_ended ON landing (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE TABLE landing_rule (
  project text PRIMARY KEY,
  onto text,
  auto boolean NOT NULL,
  checks boolean NOT NULL
);

-- Where the process that has the lock leasehold:writer takes the asks of the others. The row of a
-- later term has a higher fence, and stays when that term is over: no earlier one replaces it.
CREATE TABLE leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  fence bigint NOT NULL,
  address text NOT NULL,
  secret text NOT NULL,
  host text NOT NULL,
  version text NOT NULL
);

-- One process writes for all where a leader is: nobody else has to know what a commit changed.
DROP TABLE recent;

-- All text is compared byte by byte, as the rules do. No table is written again for that.
DO $$
DECLARE
  this record;
BEGIN
  FOR this IN SELECT t.oid::regclass AS table, a.attname AS column
    FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS t ON t.oid = a.attrelid
    WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r'
      AND a.atttypid = 'text'::regtype AND a.attcollation <> 'pg_catalog."C"'::regcollation
      AND NOT a.attisdropped
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE text COLLATE "C"', this.table, this.column);
  END LOOP;
END $$;
