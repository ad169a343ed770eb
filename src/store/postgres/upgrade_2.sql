-- Version 2 records when a lease was last renewed.
ALTER TABLE segue.worker ADD COLUMN IF NOT EXISTS renewed timestamptz NOT NULL DEFAULT clock_timestamp();
UPDATE segue.meta SET version = 2;
COMMENT ON SCHEMA segue IS 'segue store 2';
