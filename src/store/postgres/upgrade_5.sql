-- Version 5 keeps a request to a session until somebody has met it.
UPDATE segue.meta SET version = 5;
COMMENT ON SCHEMA segue IS 'segue store 5';
