-- Version 9 makes sessions with their first records in one statement, many at once.
UPDATE segue.meta SET version = 9;
COMMENT ON SCHEMA segue IS 'segue store 9';
