-- Version 2: when a lease was renewed last.
ALTER TABLE segue.worker ADD COLUMN IF NOT EXISTS renewed timestamptz NOT NULL DEFAULT clock_timestamp();
UPDATE segue.meta SET version = 2;
COMMENT ON SCHEMA segue IS 'segue store 2';
