-- What happened, counted: src/core/stat.ts. One row is written with every commit that has events.
CREATE TABLE stat (
  key text COLLATE "C" PRIMARY KEY,
  scale text COLLATE "C" NOT NULL,
  start_at text COLLATE "C" NOT NULL,
  counts json NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE INDEX stats_of ON stat (scale, start_at, key);

CREATE TABLE alert (
  key text COLLATE "C" PRIMARY KEY,
  rule text NOT NULL,
  subject text NOT NULL,
  message text NOT NULL,
  since_at text COLLATE "C" NOT NULL,
  quiet_ms bigint,
  ended_at text,
  told boolean NOT NULL,
  told_end boolean NOT NULL
);
CREATE INDEX alerts ON alert (since_at, key);
