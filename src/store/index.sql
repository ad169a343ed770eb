-- The tables of the index. Names of providers and methods stand one a line. Times are real time.
-- audit/aggregate_cache.c says how log_rows and the kinds are written; the views put them into words.
-- Private: list_rows, log_rows, the kinds, label_rows, label_log, all_rows. docs/sql.md describes the
-- rest; segue_schema rises when a column of it goes or means something else.

CREATE TABLE list_rows(id TEXT PRIMARY KEY, bytes INTEGER, time_ns INTEGER, seq INTEGER,
    head TEXT, status TEXT, goes_on INTEGER, asks INTEGER, sealed INTEGER, workflow TEXT,
    started_ms INTEGER, updated_ms INTEGER, turns INTEGER, tokens INTEGER, cost_usd REAL,
    providers TEXT, methods TEXT) WITHOUT ROWID;

CREATE TABLE log_rows(session TEXT PRIMARY KEY, seq INTEGER, head TEXT, bytes INTEGER,
    time_ns INTEGER, ended INTEGER, kind INTEGER, time_ms INTEGER, unavailable_stops INTEGER,
    last_ms INTEGER, started_ms INTEGER, calls INTEGER, call_ms INTEGER, input INTEGER,
    output INTEGER, cost_nano INTEGER, unpriced INTEGER, rows_sum INTEGER, sum INTEGER,
    rows TEXT) WITHOUT ROWID;

CREATE TABLE session_kinds(number INTEGER PRIMARY KEY, sum INTEGER, workflow TEXT,
    outcome TEXT, cause TEXT, folder TEXT, user TEXT);

CREATE TABLE row_kinds(number INTEGER PRIMARY KEY, sum INTEGER, movement TEXT, method TEXT,
    match_method TEXT, provider TEXT, model TEXT, worker TEXT, worker_model TEXT, schema TEXT,
    failure TEXT, what INTEGER, rule INTEGER, answers INTEGER, flags INTEGER);

CREATE TABLE stage_kinds(number INTEGER PRIMARY KEY, sum INTEGER, stage TEXT, reason TEXT,
    provider TEXT, model TEXT, outcome INTEGER, calls INTEGER, rule INTEGER, vote INTEGER,
    flags INTEGER);

CREATE TABLE label_rows(number INTEGER PRIMARY KEY, session TEXT, turn INTEGER, rule INTEGER,
    person TEXT, blind INTEGER, stratum TEXT, population INTEGER);

CREATE TABLE label_log(state TEXT);

CREATE VIEW segue_schema AS SELECT 1 AS version;

CREATE VIEW sessions AS SELECT l.session AS id, k.workflow, k.folder, k.user, coalesce(k.outcome, 'open') AS status,
    CASE WHEN k.cause LIKE 'complete:%' THEN substr(k.cause, 10) END AS basis,
    CASE WHEN k.cause NOT LIKE 'complete%' THEN k.cause END AS cause,
    date(l.started_ms / 1000, 'unixepoch') AS day, l.started_ms,
    max(l.time_ms, l.last_ms) AS updated_ms, l.calls, l.call_ms, l.input, l.output,
    l.cost_nano / 1e9 AS cost_usd, l.unpriced,
    l.unavailable_stops, l.seq AS records, l.head, l.bytes
    FROM log_rows AS l JOIN session_kinds AS k ON k.number = l.kind;

CREATE VIEW labels AS SELECT number, session, turn, rule, person, blind, stratum, population,
    NOT EXISTS (SELECT 1 FROM label_rows AS n WHERE n.session = l.session AND n.turn = l.turn
    AND n.person = l.person AND n.number > l.number) AS latest FROM label_rows AS l;
CREATE INDEX label_turns ON label_rows(session, turn, person, number);
-- a row: turn, kind, time in ms, its work's calls, ms, input, output, cost in nanodollars,
-- calls of unknown cost; then its stages
CREATE VIEW all_rows AS SELECT l.session, r.value->>0 AS turn, r.value->>2 AS time_ms,
    s.workflow, s.folder, s.user, s.outcome AS session_outcome, k.*, r.value->>3 AS work_calls,
    r.value->>4 AS work_ms, r.value->>5 AS work_input, r.value->>6 AS work_output,
    (r.value->>7) / 1e9 AS work_cost_usd, r.value->>8 AS work_unpriced, r.value AS numbers
    FROM log_rows AS l JOIN session_kinds AS s ON s.number = l.kind, json_each(l.rows) AS r
    JOIN row_kinds AS k ON k.number = r.value->>1;

CREATE VIEW turns AS SELECT session, turn, max(time_ms) AS time_ms, workflow,
    folder, user, session_outcome, movement, max(worker) AS worker, max(worker_model) AS worker_model,
    sum(work_calls) AS calls, sum(work_ms) AS duration_ms, sum(work_input) AS input,
    sum(work_output) AS output, sum(work_cost_usd) AS cost_usd, sum(work_unpriced) AS unpriced
    FROM all_rows GROUP BY session, turn;

CREATE VIEW judgments AS SELECT session, turn, time_ms, workflow, folder, user, session_outcome, movement,
    method, match_method, nullif(rule, 0) AS rule, failure, provider, model, worker,
    worker_model, schema, flags & 1 AS ambiguous, flags >> 1 & 1 AS undecided,
    CASE flags >> 5 WHEN 1 THEN 'present' WHEN 2 THEN 'elsewhere' WHEN 3 THEN 'wrong'
    WHEN 4 THEN 'missing' END AS mark
    FROM all_rows WHERE what = 0;
-- a stage: its kind, then use by its calls, then the part of that for corrections
CREATE VIEW stages AS SELECT a.session, a.turn, s.key - 8 AS number, a.time_ms, a.workflow,
    a.movement, k.stage, CASE k.outcome WHEN 0 THEN 'matched' WHEN 1 THEN 'no_match'
    WHEN 2 THEN 'unreadable' WHEN 3 THEN 'invalid' WHEN 4 THEN 'out_of_range'
    WHEN 5 THEN 'hidden' WHEN 6 THEN 'error' WHEN 7 THEN 'ambiguous' WHEN 8 THEN 'skipped' END
    AS outcome, k.reason, nullif(k.rule, 0) AS rule, nullif(k.vote, 0) AS vote, k.provider,
    k.model, coalesce(s.value->>1, 0) AS calls, coalesce(s.value->>2, 0) AS duration_ms,
    coalesce(s.value->>3, 0) AS input, coalesce(s.value->>4, 0) AS output,
    coalesce(s.value->>5, 0) / 1e9 AS cost_usd, coalesce(s.value->>6, 0) AS unpriced
    FROM all_rows AS a, json_each(a.numbers) AS s
    JOIN stage_kinds AS k ON k.number = s.value->>0 WHERE s.type = 'array';

CREATE VIEW calls AS SELECT session, turn, time_ms, workflow, movement, 'work' AS purpose,
    worker AS provider, worker_model AS model, work_calls AS count, work_ms AS duration_ms,
    work_input AS input, work_output AS output, work_cost_usd AS cost_usd,
    work_unpriced AS unpriced FROM all_rows WHERE work_calls > 0
    UNION ALL SELECT session, turn, time_ms, workflow, movement, stage, provider, model, calls,
    duration_ms, input, output, cost_usd, unpriced FROM stages WHERE calls > 0;

-- the usual questions
CREATE VIEW rates_by_day AS SELECT date(time_ms / 1000, 'unixepoch') AS day, workflow, movement,
    count(*) AS judgments, sum(rule IS NULL) AS no_rule, sum(ambiguous) AS ambiguous,
    count(DISTINCT session) AS sessions FROM judgments GROUP BY 1, 2, 3;
CREATE VIEW fallbacks AS SELECT workflow, movement, stage, outcome, reason, count(*) AS stages,
    sum(calls) AS calls, sum(input + output) AS tokens, sum(cost_usd) AS cost_usd FROM stages
    WHERE outcome <> 'matched' AND vote IS NULL GROUP BY 1, 2, 3, 4, 5;
CREATE VIEW spending AS SELECT date(time_ms / 1000, 'unixepoch') AS day, workflow, movement,
    purpose, provider, model, sum(count) AS calls, sum(input) AS input, sum(output) AS output,
    sum(cost_usd) AS cost_usd, sum(unpriced) AS unpriced FROM calls GROUP BY 1, 2, 3, 4, 5, 6;
CREATE VIEW disagreements AS SELECT j.session, j.turn, j.workflow, j.movement, j.method,
    j.provider, j.model, j.rule AS judged, l.rule AS labelled, l.person, l.blind FROM labels AS l
    JOIN judgments AS j ON j.session = l.session AND j.turn = l.turn
    WHERE l.latest AND l.rule IS NOT j.rule;
