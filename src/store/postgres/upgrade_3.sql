-- Version 3: a claim leaves out sessions its worker cannot go on with; lines are removed in pieces.
UPDATE segue.meta SET version = 3;
COMMENT ON SCHEMA segue IS 'segue store 3';
