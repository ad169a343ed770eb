-- Version 4: places at providers that all workers share, and how long a provider is left alone.
CREATE TABLE segue.provider (
  name text PRIMARY KEY,
  seats int CHECK (seats > 0), -- null: no limit
  cool_until timestamptz
);

-- A place that a call has. Those of workers without a lease do not count.
CREATE TABLE segue.seat (
  worker uuid NOT NULL REFERENCES segue.worker ON DELETE CASCADE,
  n bigint NOT NULL,
  provider text NOT NULL REFERENCES segue.provider,
  taken timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (worker, n)
);
CREATE INDEX seat_provider ON segue.seat (provider);

-- The sentence of the worker that let go of it last and could not go on with it.
ALTER TABLE segue.session ADD COLUMN why text;
UPDATE segue.meta SET version = 4;
COMMENT ON SCHEMA segue IS 'segue store 4';
