-- What is over, by when it was: retention takes it from the front. Rows in force are in none of
-- these, so that a grant or a claim has nothing more to write.

CREATE INDEX leases_ended ON lease (expires_ms, name) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_ended ON run (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX agents_by_seen ON agent (last_seen_ms, id);
CREATE INDEX tokens_by_end ON token (coalesce(expires_ms, 0), hash)
  WHERE expires_ms IS NOT NULL OR revoked_at IS NOT NULL;
CREATE INDEX memories_deleted ON memory (updated_ms, id) WHERE live = 0 AND heads <> '[]';

PRAGMA user_version = 9;
