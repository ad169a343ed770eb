-- Makes the tables of a shared store, version 1. The lines of a log are its truth; a session's row
-- copies what they say, except for owner, fence, deaths and requests.
CREATE SCHEMA segue;
COMMENT ON SCHEMA segue IS 'segue store 1';

CREATE TABLE segue.meta (
  version int NOT NULL,
  made timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO segue.meta (version) VALUES (1);

-- One row per start of a worker: its lease covers all sessions that it holds.
CREATE TABLE segue.worker (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  labels text[] NOT NULL DEFAULT '{}',
  program text NOT NULL DEFAULT '',
  begun timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE segue.session (
  id uuid PRIMARY KEY,
  place bigint GENERATED ALWAYS AS IDENTITY, -- in the queue, by the server's order, not by a clock
  state text NOT NULL CHECK (state IN ('ready', 'held', 'idle', 'ended')),
  rest text NOT NULL DEFAULT 'idle' CHECK (rest IN ('ready', 'idle', 'ended')), -- once released
  ready_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  needs text[] NOT NULL DEFAULT '{}',
  owner uuid,
  fence bigint NOT NULL DEFAULT 0,
  deaths int NOT NULL DEFAULT 0,
  died text, -- the worker it was last taken from
  moved boolean NOT NULL DEFAULT false, -- it goes on in another store
  asked text, -- cancel, resume, or none
  asked_by text,
  seq bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  hash bytea
) WITH (fillfactor = 50);
CREATE INDEX session_ready ON segue.session (place) WHERE state = 'ready';
CREATE INDEX session_held ON segue.session (owner) WHERE state = 'held';

-- A record: its exact bytes without the newline. at: its first byte in the log.
CREATE TABLE segue.line (
  session uuid NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  line bytea NOT NULL,
  PRIMARY KEY (session, seq)
);
ALTER TABLE segue.line ALTER COLUMN line SET STORAGE EXTERNAL; -- so that pieces of it can be read

CREATE TABLE segue.blob (
  sha256 bytea PRIMARY KEY,
  bytes bigint NOT NULL,
  put_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE segue.blob_part (
  sha256 bytea NOT NULL REFERENCES segue.blob ON DELETE CASCADE,
  part int NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (sha256, part)
);
ALTER TABLE segue.blob_part ALTER COLUMN data SET STORAGE EXTERNAL;

-- Chains beside the logs: the ledger of heads, the labels of persons.
CREATE TABLE segue.chain (
  name text NOT NULL CHECK (name IN ('heads', 'labels')),
  n bigint NOT NULL,
  line bytea NOT NULL,
  PRIMARY KEY (name, n)
);
