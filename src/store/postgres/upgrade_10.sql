-- Version 10 keeps what an audit read of a log, so that the next one need not read it. It is never the
-- truth: a row counts only while its log ends as it did then, and may be deleted at any time.
CREATE TABLE segue.counted (
  session uuid PRIMARY KEY,
  seq bigint NOT NULL, -- the log's last record when it was read, and its hash
  hash bytea NOT NULL,
  format int NOT NULL, -- of `judgments` (src/audit/aggregate_shared.c)
  last_ms bigint NOT NULL, -- time of the newest of them
  judgments bytea NOT NULL
);
UPDATE segue.meta SET version = 10;
COMMENT ON SCHEMA segue IS 'segue store 10';
