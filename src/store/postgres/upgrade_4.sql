-- Version 4 adds places at providers that all workers share, and pauses of providers.
CREATE TABLE segue.provider (
  name text PRIMARY KEY,
  seats int CHECK (seats > 0), -- null: no limit
  cool_until timestamptz
);

-- A place that a call holds; it does not count while its worker has no lease.
CREATE TABLE segue.seat (
  worker uuid NOT NULL REFERENCES segue.worker ON DELETE CASCADE,
  n bigint NOT NULL,
  provider text NOT NULL REFERENCES segue.provider,
  taken timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (worker, n)
);
CREATE INDEX seat_provider ON segue.seat (provider);

-- A sentence: why the worker that released it last could not go on with it.
ALTER TABLE segue.session ADD COLUMN why text;
UPDATE segue.meta SET version = 4;
COMMENT ON SCHEMA segue IS 'segue store 4';
