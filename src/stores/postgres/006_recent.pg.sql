-- What the newest commits changed, so that other processes can keep what they know instead of
-- loading it again. Nobody depends on it: what is missing is loaded. So it needs no WAL, and a
-- crash may empty it. Rows are found by number and never updated.
CREATE UNLOGGED TABLE recent (
  commits bigint PRIMARY KEY,
  shape text NOT NULL,
  changes text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
-- Short-lived: compressing it costs more than it saves.
ALTER TABLE recent ALTER COLUMN changes SET STORAGE EXTERNAL;
