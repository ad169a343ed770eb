-- Version 12: workers have words, which the functions ask for (functions.sql). Whoever holds a session has
-- none yet; its lease ends.
UPDATE segue.meta SET version = 12;
COMMENT ON SCHEMA segue IS 'segue store 12';
