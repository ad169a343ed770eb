-- Version 6 finds what fits a worker without a look at each session that waits for another.
CREATE INDEX session_fit ON segue.session ((needs[1:8]) COLLATE "C", place) WHERE state = 'ready';
UPDATE segue.meta SET version = 6;
COMMENT ON SCHEMA segue IS 'segue store 6';
