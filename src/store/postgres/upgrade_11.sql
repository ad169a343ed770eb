-- Version 11 lets a session wait for others: it stands as `waits`, outside of the queue.
ALTER TABLE segue.session
  ADD COLUMN after uuid[], -- the sessions that it still waits for; null: none, or one never lets it begin
  ADD COLUMN after_any boolean NOT NULL DEFAULT false, -- for whatever end of theirs
  DROP CONSTRAINT session_state_check,
  ADD CONSTRAINT session_state_check CHECK (state IN ('ready', 'held', 'idle', 'ended', 'waits'));
CREATE INDEX session_after ON segue.session USING gin (after) WITH (fastupdate = off) WHERE after IS NOT NULL;
-- Sessions that ended, stopped or went while others waited for them, until those are told: segue.settle.
CREATE TABLE segue.over (id uuid PRIMARY KEY);
-- It also keeps what people say to a session elsewhere, until its owner has recorded it.
ALTER TABLE segue.session ADD COLUMN said text[] NOT NULL DEFAULT '{}'; -- each: a key, and what the daemon was sent
UPDATE segue.meta SET version = 11;
COMMENT ON SCHEMA segue IS 'segue store 11';
