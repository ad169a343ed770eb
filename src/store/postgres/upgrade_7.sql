-- Version 7 tells workers that died from those that lost their lease and live.
ALTER TABLE segue.worker ADD COLUMN lives boolean NOT NULL DEFAULT false; -- without a lease
-- The workers whose deaths are counted, in order.
ALTER TABLE segue.session ADD COLUMN dead uuid[] NOT NULL DEFAULT '{}';
CREATE INDEX session_deaths ON segue.session (id) WHERE deaths > 0;
UPDATE segue.meta SET version = 7;
COMMENT ON SCHEMA segue IS 'segue store 7';
