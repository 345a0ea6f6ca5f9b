-- Finding notes: an index of their words, vectors of what they mean, and what is done behind them.

CREATE TABLE memory_words (
  id text COLLATE "C" PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  words tsvector NOT NULL
);
CREATE INDEX memory_words_in ON memory_words USING gin (words);

-- Letters and digits only: paths and names with underscores are found by their parts.
CREATE FUNCTION words_of(said text) RETURNS tsvector LANGUAGE sql IMMUTABLE AS
  $$ SELECT to_tsvector('pg_catalog.english',
       regexp_replace(left(said, 65536), '[^[:alnum:]]+', ' ', 'g')) $$;

CREATE TABLE background_job (
  key text COLLATE "C" PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  subject text NOT NULL,
  state text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL,
  next_ms bigint NOT NULL,
  fence bigint,
  error text,
  asked_at text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX background_jobs_due ON background_job (kind, next_ms, key) WHERE state = 'waiting';
CREATE INDEX background_jobs_in ON background_job (state, key) WHERE state <> 'waiting';

CREATE TABLE vector (
  key text COLLATE "C" PRIMARY KEY,
  provider text NOT NULL,
  hash text NOT NULL,
  bytes bytea NOT NULL
);

CREATE TABLE embedding (
  key text COLLATE "C" PRIMARY KEY,
  provider text NOT NULL,
  dimensions bigint NOT NULL,
  since_at text NOT NULL,
  cursor text
);

CREATE TABLE duplicate (
  id text COLLATE "C" PRIMARY KEY,
  a text COLLATE "C" NOT NULL,
  b text COLLATE "C" NOT NULL,
  similarity float8 NOT NULL,
  label text,
  status text COLLATE "C" NOT NULL,
  action text,
  found_at text NOT NULL,
  resolved_by text,
  resolved_at text
);
CREATE INDEX duplicates_with ON duplicate (status, (-similarity), id);
CREATE INDEX duplicates_of ON duplicate (a, id);
CREATE INDEX duplicates_to ON duplicate (b, id);

-- Which vectors are still of some note.
CREATE INDEX versions_with_hash ON memory_version (hash);

INSERT INTO memory_words
  SELECT m.id, m.scope, setweight(words_of(m.key), 'A') || setweight(words_of(m.tags::text), 'B')
    || setweight(words_of((SELECT string_agg(left(t.content, 65536), ' ')
         FROM json_array_elements_text(m.heads) AS h
         JOIN memory_text AS t ON t.id = m.id || chr(10) || h)), 'C')
  FROM memory AS m WHERE m.live;
INSERT INTO background_job
  SELECT 'embed' || chr(10) || id, 'embed', id, 'waiting', 0, 0, NULL, NULL, updated_at
  FROM memory WHERE live;
