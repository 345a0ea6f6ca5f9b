-- The rows of src/core/rows.ts, column for column, and the indexes of src/core/view.ts.
-- Text is compared byte by byte, as the rules do. JSON is kept as it was written: events are
-- hashed. Rows that change with every claim leave room for their next version on the same page.

CREATE TABLE head (
  id bigint PRIMARY KEY CHECK (id = 1),
  epoch bigint NOT NULL,
  fences bigint NOT NULL,
  task_number bigint NOT NULL,
  position bigint NOT NULL,
  hash text NOT NULL,
  boot text NOT NULL,
  offset_ms bigint NOT NULL,
  last_ms bigint NOT NULL,
  -- Rises with every commit: who finds it unchanged may go on with the rows it remembers.
  commits bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE task (
  id text COLLATE "C" PRIMARY KEY,
  title text NOT NULL,
  body text NOT NULL,
  project text,
  "user" text COLLATE "C",
  priority bigint NOT NULL,
  "group" text,
  labels json NOT NULL,
  depends_on json NOT NULL,
  assigned_to text,
  metadata json NOT NULL,
  status text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  assignee text,
  assigned_at text,
  attempts bigint NOT NULL,
  created_by text NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  updated_at text NOT NULL,
  rank bigint NOT NULL,
  unmet bigint NOT NULL,
  lock_fence bigint,
  run_id text,
  queue json
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX tasks ON task (created_at, id);
CREATE INDEX tasks_with_status ON task (status, rank, id);
CREATE INDEX queue_of ON task (coalesce("user", ''), rank, id)
  WHERE queue IS NOT NULL AND status = 'todo';

CREATE TABLE dependency (
  key text COLLATE "C" PRIMARY KEY,
  task_id text COLLATE "C" NOT NULL,
  depends_on text COLLATE "C" NOT NULL
);
CREATE INDEX dependents_of ON dependency (depends_on, task_id, key);

CREATE TABLE ready (
  key text COLLATE "C" PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  rank bigint NOT NULL,
  task_id text NOT NULL,
  high boolean NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
-- Keys begin with scope and rank: the primary key is the index that scans use.

-- One row per lock that was ever granted; the partial indexes hold only those in force.
CREATE TABLE lease (
  name text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  holder text COLLATE "C" NOT NULL,
  holder_given boolean NOT NULL,
  process json,
  "group" json,
  seat text COLLATE "C",
  acquired_at text NOT NULL,
  acquired_ms bigint NOT NULL,
  ttl_ms bigint NOT NULL,
  expires_ms bigint NOT NULL,
  ended_at text,
  reason text,
  terms json
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX leases_by_expiry ON lease (expires_ms, name) WHERE ended_at IS NULL;
CREATE INDEX leases_held_by ON lease (holder, name) WHERE ended_at IS NULL;
CREATE INDEX leases_seated_at ON lease (seat, name) WHERE ended_at IS NULL AND seat IS NOT NULL;

CREATE TABLE run (
  id text COLLATE "C" PRIMARY KEY,
  task_id text NOT NULL,
  agent text NOT NULL,
  fence bigint NOT NULL,
  host text,
  pid bigint,
  status text NOT NULL,
  started_at text COLLATE "C" NOT NULL,
  ended_at text,
  outcome text,
  dispatcher text COLLATE "C",
  begun_at text,
  exit_code bigint,
  signal text
) WITH (fillfactor = 80);
-- Runs are found by their id, which begins with that of their task: no index to keep.
CREATE INDEX runs_newest ON run ((-fence), id) WHERE dispatcher IS NOT NULL;
CREATE INDEX runs_dispatched_by ON run (dispatcher, id)
  WHERE ended_at IS NULL AND dispatcher IS NOT NULL;

CREATE TABLE ticket (
  id text COLLATE "C" PRIMARY KEY,
  names json NOT NULL,
  agent text NOT NULL,
  agent_given boolean NOT NULL,
  process json,
  stand_in boolean NOT NULL,
  node text COLLATE "C",
  under_node text COLLATE "C",
  priority bigint NOT NULL,
  asked_at text NOT NULL,
  asked_ms bigint NOT NULL,
  rank bigint NOT NULL,
  seen_ms bigint NOT NULL,
  called_ms bigint,
  cycle json
) WITH (fillfactor = 50);
CREATE INDEX tickets ON ticket (rank, id);
CREATE INDEX tickets_of ON ticket (node, asked_ms, id);
CREATE INDEX tickets_under ON ticket (under_node, asked_ms, id);

CREATE TABLE place (
  key text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  rank bigint NOT NULL,
  ticket_id text NOT NULL
);
CREATE INDEX line_of ON place (name, rank, key);

CREATE TABLE agent (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL,
  host text,
  pid bigint,
  first_seen_at text NOT NULL,
  last_seen_at text NOT NULL,
  last_seen_ms bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE request (
  key text COLLATE "C" PRIMARY KEY,
  input_hash text NOT NULL,
  reply json NOT NULL,
  at_ms bigint NOT NULL
);
CREATE INDEX requests_by_age ON request (at_ms, key);

CREATE TABLE token (
  hash text COLLATE "C" PRIMARY KEY,
  id text NOT NULL,
  role text NOT NULL,
  agent text,
  created_by text NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  expires_at text,
  expires_ms bigint,
  revoked_at text
);
CREATE INDEX tokens ON token (created_at, hash);

CREATE TABLE share (
  "user" text COLLATE "C" PRIMARY KEY,
  weight float8 NOT NULL,
  max bigint,
  running json NOT NULL,
  pending bigint NOT NULL,
  pending_high bigint NOT NULL,
  waits boolean NOT NULL,
  last_ms bigint NOT NULL,
  vt float8 NOT NULL,
  run_ms float8,
  paused boolean NOT NULL,
  "group" text,
  lanes bigint NOT NULL,
  next_lane text,
  next_task text,
  next_high boolean NOT NULL,
  turn text COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX shares_in_turn ON share (turn, vt, "user") WHERE turn IS NOT NULL;
CREATE INDEX shares_waiting ON share ("user") WHERE waits;
CREATE INDEX shares_special ON share ("user") WHERE weight <> 1 OR max IS NOT NULL;

CREATE TABLE lane (
  key text COLLATE "C" PRIMARY KEY,
  "user" text COLLATE "C" NOT NULL,
  project text,
  "group" text,
  group_key text COLLATE "C",
  ready bigint NOT NULL,
  head_rank bigint,
  head_task text,
  head_high boolean NOT NULL,
  parked_on text COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX lanes_of ON lane ("user", head_rank, key) WHERE ready > 0 AND parked_on IS NULL;
CREATE INDEX lanes_of_group ON lane (group_key, head_rank, key)
  WHERE ready > 0 AND parked_on IS NULL AND group_key IS NOT NULL;
CREATE INDEX lanes_parked_at ON lane ((parked_on || chr(10) || "user"), head_rank, key)
  WHERE parked_on IS NOT NULL;

CREATE TABLE parking (
  key text COLLATE "C" PRIMARY KEY,
  "limit" text COLLATE "C" NOT NULL,
  "user" text COLLATE "C" NOT NULL,
  vt float8 NOT NULL,
  turn text COLLATE "C" NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX parkings_of ON parking ("user", "limit", key);
CREATE INDEX parkings_at ON parking (("limit" || chr(10) || turn), vt, key);

CREATE TABLE "limit" (
  key text COLLATE "C" PRIMARY KEY,
  max bigint,
  used bigint NOT NULL,
  paused boolean NOT NULL,
  parked bigint NOT NULL,
  wakes text COLLATE "C"
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE INDEX limits_waking ON "limit" (wakes, key) WHERE wakes IS NOT NULL;

CREATE TABLE queue (
  key text COLLATE "C" PRIMARY KEY,
  vclock float8 NOT NULL,
  high_streak bigint NOT NULL,
  paused boolean NOT NULL,
  user_max bigint,
  lock_timeout_ms bigint NOT NULL,
  run_ms float8
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

CREATE TABLE dispatcher (
  id text COLLATE "C" PRIMARY KEY,
  host text NOT NULL,
  pid bigint NOT NULL,
  slots_max bigint NOT NULL,
  projects json NOT NULL,
  started_at text NOT NULL
);

CREATE TABLE event (
  position bigint PRIMARY KEY,
  at text NOT NULL,
  type text NOT NULL,
  agent text NOT NULL,
  lock text,
  task text,
  data json NOT NULL,
  hash text NOT NULL
);

-- Where the chain begins once old events were pruned: the last one before those that are left.
CREATE TABLE checkpoint (
  id bigint PRIMARY KEY CHECK (id = 1),
  position bigint NOT NULL,
  hash text NOT NULL
);
