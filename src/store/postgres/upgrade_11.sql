-- Version 11 keeps what people say to a session elsewhere, until its owner has recorded it.
ALTER TABLE segue.session ADD COLUMN said text[] NOT NULL DEFAULT '{}'; -- each: a key, and what the daemon was sent
UPDATE segue.meta SET version = 11;
COMMENT ON SCHEMA segue IS 'segue store 11';
