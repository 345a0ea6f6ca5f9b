-- Shared memory: notes, their versions and texts, conflicts, what is used, and how to merge.

CREATE TABLE memory (
  id text COLLATE "C" PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  heads json NOT NULL,
  live boolean NOT NULL,
  author text NOT NULL,
  confidence float8,
  tags json NOT NULL,
  size bigint NOT NULL,
  created_at text NOT NULL,
  updated_at text NOT NULL,
  updated_ms bigint NOT NULL,
  expires_ms bigint
) WITH (fillfactor = 80);
CREATE INDEX memories ON memory (id) WHERE live;
CREATE INDEX memories_in ON memory (scope, key, id) WHERE live;
CREATE INDEX memories_by_age ON memory (updated_ms, id) WHERE heads::text <> '[]';
CREATE INDEX memories_by_expiry ON memory (expires_ms, id)
  WHERE live AND expires_ms IS NOT NULL;

CREATE TABLE memory_version (
  id text COLLATE "C" PRIMARY KEY,
  memory_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  parents json NOT NULL,
  kind text NOT NULL,
  strategy text,
  author text NOT NULL,
  task_id text,
  fence bigint,
  confidence float8,
  tags json NOT NULL,
  hash text NOT NULL,
  size bigint NOT NULL,
  kept boolean NOT NULL,
  created_at text NOT NULL,
  created_ms bigint NOT NULL,
  expires_ms bigint
);
CREATE INDEX versions_of ON memory_version (memory_id, (-version), id);

CREATE TABLE memory_text (
  id text COLLATE "C" PRIMARY KEY,
  content text NOT NULL
);

CREATE TABLE memory_conflict (
  id text COLLATE "C" PRIMARY KEY,
  memory_id text COLLATE "C" NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  ours bigint NOT NULL,
  theirs bigint NOT NULL,
  base bigint,
  status text COLLATE "C" NOT NULL,
  strategy text NOT NULL,
  why text,
  opened_by text NOT NULL,
  opened_at text NOT NULL,
  opened_ms bigint NOT NULL,
  closed_by text,
  closed_at text,
  result bigint,
  replaced_by text
);
CREATE INDEX conflicts ON memory_conflict (status, opened_ms, id);
CREATE INDEX conflicts_of ON memory_conflict (memory_id, opened_ms, id);

CREATE TABLE memory_usage (
  key text COLLATE "C" PRIMARY KEY,
  versions bigint NOT NULL,
  bytes bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE memory_settings (
  key text COLLATE "C" PRIMARY KEY,
  strategies json NOT NULL,
  quotas json NOT NULL
);
