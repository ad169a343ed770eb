-- Version 5: what is asked of a session is kept until somebody has done it.
UPDATE segue.meta SET version = 5;
COMMENT ON SCHEMA segue IS 'segue store 5';
