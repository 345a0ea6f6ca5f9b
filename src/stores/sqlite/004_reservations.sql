-- Reservations: leases that have a path. Found by the leading folders of their globs.

ALTER TABLE lease ADD COLUMN path TEXT;

CREATE INDEX reservations ON lease (path ->> 'base', name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_in ON lease (path ->> 'scope', path ->> 'base', name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_of ON lease (path ->> 'project', path ->> 'base', name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_beside ON lease (path ->> 'family', path ->> 'base', name)
  WHERE ended_at IS NULL AND path IS NOT NULL;

PRAGMA user_version = 4;
