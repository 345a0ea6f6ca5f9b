-- What hosts lend to runs: `Resource` in src/core/queue/rows.ts.
CREATE TABLE resource (
  key text COLLATE "C" PRIMARY KEY,
  host text NOT NULL,
  name text NOT NULL,
  offered json NOT NULL,
  projects json NOT NULL,
  lent json NOT NULL
);

-- Git worktrees of runs: `Worktree` in src/core/queue/rows.ts.
CREATE TABLE worktree (
  id text COLLATE "C" PRIMARY KEY,
  task_id text COLLATE "C" NOT NULL,
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
  begun_at text COLLATE "C" NOT NULL,
  left_at text
);
CREATE INDEX worktrees ON worktree (begun_at, id);
CREATE INDEX worktrees_of ON worktree (task_id, begun_at, id);
