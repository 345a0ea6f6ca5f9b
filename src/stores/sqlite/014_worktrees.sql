-- What hosts lend to runs: `Resource` in src/core/queue/rows.ts.
CREATE TABLE resource (
  key TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  name TEXT NOT NULL,
  offered TEXT NOT NULL,
  projects TEXT NOT NULL,
  lent TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Git worktrees of runs: `Worktree` in src/core/queue/rows.ts.
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

PRAGMA user_version = 14;
