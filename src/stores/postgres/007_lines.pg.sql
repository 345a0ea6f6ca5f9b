-- Lines of any length: whoever joins finds the end of the line, and whoever sweeps finds those who
-- are gone, without going through all waiters.

ALTER TABLE place ADD COLUMN priority bigint NOT NULL DEFAULT 0;
ALTER TABLE place ADD COLUMN several boolean NOT NULL DEFAULT true;
UPDATE place SET priority = t.priority, several = json_array_length(t.names) > 1
  FROM ticket AS t WHERE t.id = ticket_id;
CREATE INDEX line_end ON place ((name || chr(10) || priority::text), (-rank), key);
CREATE INDEX line_several ON place (name, rank, key) WHERE several;

ALTER TABLE ticket ADD COLUMN seat text COLLATE "C";
ALTER TABLE ticket ADD COLUMN due_ms bigint;
UPDATE ticket SET seat = process ->> 'seat',
  due_ms = CASE WHEN process IS NULL OR cycle IS NOT NULL THEN seen_ms + 10000
    WHEN called_ms IS NOT NULL THEN called_ms + 2000 END;
CREATE INDEX tickets_due ON ticket (due_ms, id) WHERE due_ms IS NOT NULL;
CREATE INDEX tickets_seated_at
  ON ticket (seat, (((process ->> 'pid') || '/' || (process ->> 'start')) COLLATE "C"), id)
  WHERE seat IS NOT NULL;

-- Whether a process lives is asked once per process, not once per lease.
DROP INDEX leases_seated_at;
CREATE INDEX leases_seated_at
  ON lease (seat, (((process ->> 'pid') || '/' || (process ->> 'start')) COLLATE "C"), name)
  WHERE ended_at IS NULL AND seat IS NOT NULL;
