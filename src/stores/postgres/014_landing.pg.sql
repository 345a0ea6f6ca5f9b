-- Branches on their way to a target, and how each project lands: src/core/landing/rows.ts.
CREATE TABLE landing (
  id text COLLATE "C" PRIMARY KEY,
  seq bigint NOT NULL,
  project text COLLATE "C" NOT NULL,
  target text,
  branch text,
  "commit" text,
  task_id text COLLATE "C",
  priority bigint NOT NULL,
  rank text COLLATE "C" NOT NULL,
  status text NOT NULL,
  fence bigint,
  base text,
  candidate text,
  reason text,
  paths json NOT NULL,
  output text,
  asked_by text NOT NULL,
  asked_at text NOT NULL,
  ended_at text COLLATE "C"
);
CREATE INDEX landings_open ON landing (project, rank, id) WHERE status IN ('waiting', 'landing');
CREATE INDEX landings_newest ON landing ((-seq), id);
CREATE INDEX landings_of ON landing (task_id, (-seq), id) WHERE task_id IS NOT NULL;
CREATE INDEX landings_ended ON landing (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE TABLE landing_rule (
  project text COLLATE "C" PRIMARY KEY,
  onto text,
  auto boolean NOT NULL,
  checks boolean NOT NULL
);
