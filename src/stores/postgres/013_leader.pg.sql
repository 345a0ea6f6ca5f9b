-- Where the process that has the lock leasehold:writer takes the asks of the others. The row of a
-- later term has a higher fence, and stays when that term is over: no earlier one replaces it.
CREATE TABLE leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  fence bigint NOT NULL,
  address text NOT NULL,
  secret text NOT NULL,
  host text NOT NULL,
  version text NOT NULL
);
