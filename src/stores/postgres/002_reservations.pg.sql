-- Reservations: leases that have a path. Found by the leading folders of their globs.

ALTER TABLE lease ADD COLUMN path json;

CREATE INDEX reservations ON lease (((path ->> 'base') COLLATE "C"), name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_in
  ON lease (((path ->> 'scope') COLLATE "C"), ((path ->> 'base') COLLATE "C"), name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_of
  ON lease (((path ->> 'project') COLLATE "C"), ((path ->> 'base') COLLATE "C"), name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
CREATE INDEX reservations_beside
  ON lease (((path ->> 'family') COLLATE "C"), ((path ->> 'base') COLLATE "C"), name)
  WHERE ended_at IS NULL AND path IS NOT NULL;
