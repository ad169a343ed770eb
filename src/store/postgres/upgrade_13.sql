-- Version 13 adds what attempts of calls have used of the caps of a day, of the store ('') and of
-- folders; a day is one of this server's clock, in UTC.
CREATE TABLE segue.spent (
  day date NOT NULL,
  cap text NOT NULL,
  session uuid NOT NULL,
  call bigint NOT NULL,
  attempt int NOT NULL,
  begun boolean NOT NULL DEFAULT false, -- on this day; it ends perhaps on the next one
  tokens bigint NOT NULL DEFAULT 0,
  cost bigint NOT NULL DEFAULT 0, -- US dollars / 1e9
  ms bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, cap, session, call, attempt)
);
CREATE INDEX spent_call ON segue.spent (session, call);
UPDATE segue.meta SET version = 13;
COMMENT ON SCHEMA segue IS 'segue store 13';
