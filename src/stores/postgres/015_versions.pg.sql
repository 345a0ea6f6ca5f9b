-- Rows that are written again and again: each version has an entry of its own in the primary key,
-- so that neither a look nor a write passes versions that cannot be cleared yet, as long as
-- somebody keeps a transaction open. `written` is the commit that wrote the row. See versions.ts.
ALTER TABLE lease ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE lease DROP CONSTRAINT lease_pkey, ADD PRIMARY KEY (name, written);
ALTER TABLE share ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE share DROP CONSTRAINT share_pkey, ADD PRIMARY KEY ("user", written);
ALTER TABLE lane ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE lane DROP CONSTRAINT lane_pkey, ADD PRIMARY KEY (key, written);
ALTER TABLE parking ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE parking DROP CONSTRAINT parking_pkey, ADD PRIMARY KEY (key, written);
ALTER TABLE "limit" ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE "limit" DROP CONSTRAINT limit_pkey, ADD PRIMARY KEY (key, written);
ALTER TABLE queue ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE queue DROP CONSTRAINT queue_pkey, ADD PRIMARY KEY (key, written);
ALTER TABLE stat ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE stat DROP CONSTRAINT stat_pkey, ADD PRIMARY KEY (key, written);

-- The same for the head, which has that number already.
ALTER TABLE head DROP CONSTRAINT head_pkey, ADD PRIMARY KEY (commits);
