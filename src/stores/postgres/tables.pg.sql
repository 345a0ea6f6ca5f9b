-- What a new database has beside the tables of src/core/schema. JSON is kept as it was written:
-- events are hashed.

CREATE TABLE head (
  id bigint PRIMARY KEY CHECK (id = 1),
  epoch bigint NOT NULL,
  fences bigint NOT NULL,
  task_number bigint NOT NULL,
  position bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  boot text COLLATE "C" NOT NULL,
  offset_ms bigint NOT NULL,
  last_ms bigint NOT NULL,
  -- Rises with every commit: who finds it unchanged may go on with the rows it remembers.
  commits bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Where the chain begins once old events were pruned: the last one before those that are left.
CREATE TABLE checkpoint (
  id bigint PRIMARY KEY CHECK (id = 1),
  position bigint NOT NULL,
  hash text COLLATE "C" NOT NULL
);

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

-- Where the process that has the lock leasehold:writer takes the asks of the others. The row of a
-- later term has a higher fence, and stays when that term is over: no earlier one replaces it.
CREATE TABLE leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  fence bigint NOT NULL,
  address text COLLATE "C" NOT NULL,
  secret text COLLATE "C" NOT NULL,
  host text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL
);
