-- Version 8 keeps a session that is moved here in transit until its source is set aside: moved, and not
-- ended. It also records where a session was moved to.
ALTER TABLE segue.session ADD COLUMN moved_to text;
UPDATE segue.meta SET version = 8;
COMMENT ON SCHEMA segue IS 'segue store 8';
