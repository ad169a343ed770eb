-- Workers change the store only through these functions, which run with the owner's rights and a
-- search path of their own.
--
-- All workers may share one login, so what anybody can read proves nothing. A worker has a random word,
-- p_word, which it keeps to itself: its id is the word's hash (segue.who). Whoever does something with a
-- session gives the word, and has to be the owner. What a row says of its log (how many records and bytes,
-- the last hash) is compared with the lines; no line is ever replaced.
--
-- A session that is named by its id is found by its id: its state is compared with IS NOT DISTINCT FROM
-- there, which no index of one state answers. A connection plans a function once, often while the store is
-- still empty; the index of what is held, or ready, then looks cheapest, and would be read as a whole, with
-- all that has left it since the last vacuum, at each append.

-- Older versions are dropped first: a function that returns other columns cannot be replaced.
DROP TRIGGER IF EXISTS session_over ON segue.session;
DROP TRIGGER IF EXISTS session_gone ON segue.session;
DO $$
DECLARE f record;
BEGIN
  FOR f IN SELECT p.oid::regprocedure AS name FROM pg_proc p
            WHERE p.pronamespace = 'segue'::regnamespace LOOP
    EXECUTE 'DROP FUNCTION ' || f.name;
  END LOOP;
END $$;

-- Returns the id of the worker that has this word. Nobody finds a word by its id.
CREATE OR REPLACE FUNCTION segue.who(p_word uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$ -- without a search path of its own it is a part of who calls it
  SELECT encode(substring(sha256(uuid_send(p_word)) FROM 1 FOR 16), 'hex')::uuid
$$;

-- Returns the hash that a line of a log or a chain ends with.
CREATE OR REPLACE FUNCTION segue.hash_of(p_line bytea) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT encode(substring(p_line FROM octet_length(p_line) - 65 FOR 64), 'escape')
$$;

CREATE OR REPLACE FUNCTION segue.has_lease(p_worker uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM segue.worker w WHERE w.id = p_worker AND w.lease_until > clock_timestamp())
$$;

-- Returns the state of a session after its owner releases it: one that is to be resumed waits for a
-- worker, and one that has not begun for those that it is to begin after.
CREATE OR REPLACE FUNCTION segue.rest_of(p_rest text, p_asked text, p_after uuid[], p_seq bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN p_rest = 'ready' AND p_after IS NOT NULL AND p_seq < 2 THEN 'waits'
              WHEN p_rest = 'idle' AND p_asked = 'resume' THEN 'ready' ELSE p_rest END
$$;

-- Returns how a session stands for those that are to begin after it, as store/predecessor.h says:
-- done, never, or pending. Its last record tells how it ended; only a complete session has outputs, which
-- might hold such a member, too.
CREATE OR REPLACE FUNCTION segue.stands(p_id uuid, p_any boolean) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
      WHEN s.id IS NULL OR (s.moved AND s.state = 'ended') THEN 'never'
      WHEN s.state = 'ended' AND (p_any OR position('"outcome":"complete"'::bytea IN l.line) > 0) THEN 'done'
      WHEN s.state = 'ended' THEN 'never'
      WHEN s.state = 'idle' AND p_any
       AND (position('"type":"session_stop","reason":"rule_no_match"'::bytea IN l.line) > 0
         OR position('"type":"session_stop","reason":"max_movements"'::bytea IN l.line) > 0
         OR position('"type":"session_stop","reason":"failed"'::bytea IN l.line) > 0) THEN 'done'
      ELSE 'pending' END
    FROM (SELECT p_id) AS i (id) LEFT JOIN segue.session s ON s.id = i.id
         LEFT JOIN segue.line l ON l.session = s.id AND l.seq = s.seq
$$;

-- Returns those of them that are pending; null: there are none, or one never lets it begin, so that its
-- worker stops it.
CREATE OR REPLACE FUNCTION segue.pending(p_after uuid[], p_any boolean) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN NOT bool_or(a.stands = 'never') THEN array_agg(a.id) FILTER (WHERE a.stands = 'pending') END
    FROM (SELECT u.id, segue.stands(u.id, p_any) AS stands FROM unnest(p_after) AS u (id)) a
$$;

-- Notes that a session for which others wait has ended, stopped or gone. It changes nothing of theirs: the
-- transaction may hold the rows of many, in any order.
CREATE OR REPLACE FUNCTION segue.note_over() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT FROM segue.session s WHERE s.after IS NOT NULL AND s.after @> ARRAY[OLD.id]) THEN
    INSERT INTO segue.over (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('segue', 'ready');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER session_over AFTER UPDATE OF state ON segue.session
  FOR EACH ROW WHEN (OLD.state <> NEW.state AND NEW.state IN ('ended', 'idle')) EXECUTE FUNCTION segue.note_over();
CREATE TRIGGER session_gone AFTER DELETE ON segue.session FOR EACH ROW EXECUTE FUNCTION segue.note_over();

-- Tells those that wait for such sessions: they wait for fewer, or are ready. It waits for no row. What
-- another has locked is told the next time. A note is deleted before anything is read, so that a later one
-- is not lost.
CREATE OR REPLACE FUNCTION segue.settle() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_id uuid; v_plain text; v_any text;
BEGIN
  IF NOT EXISTS (SELECT FROM segue.over) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('segue.settle')); -- one at a time
  FOR v_id IN DELETE FROM segue.over RETURNING id LOOP
    v_plain := segue.stands(v_id, false);
    v_any := segue.stands(v_id, true);
    WITH w AS (SELECT s.id, s.after, CASE WHEN s.after_any THEN v_any ELSE v_plain END AS stands
                 FROM segue.session s WHERE s.after IS NOT NULL AND s.after @> ARRAY[v_id]
                  FOR UPDATE SKIP LOCKED),
         u AS (SELECT w.id, CASE WHEN w.stands = 'done' THEN nullif(array_remove(w.after, v_id), '{}') END AS after
                 FROM w WHERE w.stands <> 'pending')
    UPDATE segue.session s SET after = u.after,
           state = CASE WHEN s.state = 'waits' AND u.after IS NULL THEN 'ready' ELSE s.state END
      FROM u WHERE s.id = u.id;
    INSERT INTO segue.over (id)
    SELECT v_id WHERE EXISTS (SELECT FROM segue.session s WHERE s.after IS NOT NULL AND s.after @> ARRAY[v_id]
                                 AND CASE WHEN s.after_any THEN v_any ELSE v_plain END <> 'pending');
  END LOOP;
END $$;

-- Notes that a worker lives, although its lease ended: it gave up its sessions itself. Whoever
-- releases them counts no death, and those that were counted are taken back, unless a turn ended
-- since, or a person resumed. Repeating it changes nothing.
CREATE OR REPLACE FUNCTION segue.gave_up(p_worker uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE segue.worker w SET lives = true WHERE w.id = p_worker; -- waits for a sweep that counts now
  UPDATE segue.session s
     SET deaths = s.deaths - 1, dead = array_remove(s.dead, p_worker),
         died = (SELECT w.name FROM unnest(s.dead) WITH ORDINALITY AS d (id, n)
                   JOIN segue.worker w ON w.id = d.id
                  WHERE d.id <> p_worker ORDER BY d.n DESC LIMIT 1)
   WHERE s.deaths > 0 AND p_worker = ANY (s.dead) AND s.state <> 'ended';
END $$;

-- Returns when a lease ends that begins now; an hour is the most.
CREATE OR REPLACE FUNCTION segue.lease_end(p_ttl_ms bigint) RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT clock_timestamp() + least(p_ttl_ms, 3600000) * interval '1 millisecond'
$$;

-- Registers a worker, under a fresh word each time. p_before: its word before that, if it gave up its
-- sessions itself.
CREATE OR REPLACE FUNCTION segue.enter(p_word uuid, p_name text, p_labels text[], p_program text,
                                       p_ttl_ms bigint, p_before uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM segue.gave_up(segue.who(p_before));
  INSERT INTO segue.worker (id, name, labels, program, lease_until)
  VALUES (segue.who(p_word), p_name, p_labels, p_program, segue.lease_end(p_ttl_ms));
END $$;

-- Returns false if the lease has ended: the worker's sessions may now be another's. Also returns
-- what is asked of its sessions, and how many it holds: more than it knows of if the answer to a
-- claim was lost.
CREATE OR REPLACE FUNCTION segue.renew(p_word uuid, p_ttl_ms bigint)
RETURNS TABLE (o_ok boolean, o_asked text, o_held bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_worker uuid := segue.who(p_word);
BEGIN
  UPDATE segue.worker w SET renewed = clock_timestamp(), lease_until = segue.lease_end(p_ttl_ms)
   WHERE w.id = v_worker AND w.lease_until > clock_timestamp();
  o_ok := FOUND;
  SELECT string_agg(concat_ws(E'\n', s.id::text || ' ' || s.asked,
                              CASE WHEN s.said <> '{}' THEN s.id::text || ' steer' END), E'\n')
    INTO o_asked FROM segue.session s
   WHERE s.state = 'held' AND s.owner = v_worker AND (s.asked IS NOT NULL OR s.said <> '{}');
  SELECT count(*) INTO o_held FROM segue.session s WHERE s.state = 'held' AND s.owner = v_worker;
  RETURN NEXT;
END $$;

-- Ends a worker: all its sessions are released, which does not count as a death. p_before: as for
-- segue.enter.
CREATE OR REPLACE FUNCTION segue.leave(p_word uuid, p_before uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n bigint; v_worker uuid := segue.who(p_word);
BEGIN
  PERFORM segue.gave_up(segue.who(p_before));
  DELETE FROM segue.session s WHERE s.state = 'held' AND s.owner = v_worker AND s.seq = 0;
  WITH u AS (UPDATE segue.session s SET state = segue.rest_of(s.rest, s.asked, s.after, s.seq), owner = NULL
              WHERE s.state = 'held' AND s.owner = v_worker RETURNING s.state)
  SELECT count(*) INTO n FROM u WHERE u.state = 'ready';
  IF n > 0 THEN
    PERFORM pg_notify('segue', 'ready');
  END IF;
  DELETE FROM segue.worker w WHERE w.id = v_worker;
END $$;

-- p_after: the sessions that it is to begin after. They are locked while it is made, so that none ends
-- unseen.
CREATE OR REPLACE FUNCTION segue.make(p_word uuid, p_id uuid, p_needs text[], p_after uuid[], p_any boolean)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_worker uuid := segue.who(p_word);
BEGIN
  IF NOT segue.has_lease(v_worker) THEN
    RETURN 'lease';
  END IF;
  PERFORM FROM segue.session s WHERE s.id = ANY (p_after) ORDER BY s.id FOR SHARE;
  INSERT INTO segue.session (id, state, owner, fence, needs, after, after_any)
  VALUES (p_id, 'held', v_worker, 1, p_needs, segue.pending(p_after, p_any), p_any)
  ON CONFLICT DO NOTHING;
  IF FOUND THEN
    DELETE FROM segue.line l WHERE l.session = p_id; -- left over from a removed session of this id
    RETURN 'ok';
  END IF;
  RETURN CASE WHEN EXISTS (SELECT FROM segue.session s WHERE s.id = p_id AND s.fence = 1
                                    AND s.state = 'held' AND s.owner = v_worker) THEN 'ok' -- repeated
              ELSE 'there' END;
END $$;

-- Returns what the lines of many batches are, which are sent one after the other: the number of each
-- batch, its first line, how many bytes come before it, how many lines and bytes it has, and its last hash.
CREATE OR REPLACE FUNCTION segue.batches(p_of bigint[], p_lines bytea[])
RETURNS TABLE (o_n bigint, o_first bigint, o_before bigint, o_count bigint, o_bytes bigint, o_hash text)
LANGUAGE sql IMMUTABLE AS $$
  SELECT l.n, min(l.ord), min(l.upto - l.size), count(*), sum(l.size),
         max(segue.hash_of(l.line)) FILTER (WHERE l.is_last)
    FROM (SELECT a.n, a.ord, a.line, octet_length(a.line) + 1 AS size,
                 sum(octet_length(a.line) + 1) OVER w AS upto, a.n IS DISTINCT FROM lead(a.n) OVER w AS is_last
            FROM unnest(p_of, p_lines) WITH ORDINALITY AS a (n, line, ord) WINDOW w AS (ORDER BY a.ord)) l
   GROUP BY l.n HAVING max(l.ord) - min(l.ord) + 1 = count(*)
$$;

-- Makes sessions with the first records of each in one statement, and returns the position of each
-- that was made, from 1 on. segue.make and segue.append say what became of the others. p_of: the session
-- that each line belongs to, by position.
CREATE OR REPLACE FUNCTION segue.begin_all(p_word uuid, p_ids uuid[], p_needs text[], p_rests text[],
                                           p_of bigint[], p_lines bytea[])
RETURNS TABLE (o_n bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE v_worker uuid := segue.who(p_word); v_ats bigint[] := array_fill(-1, ARRAY[cardinality(p_ids)]); v_firsts bigint[]; v_befores bigint[];
        v_counts bigint[]; v_bytes bigint[]; v_hashes text[]; r record;
BEGIN
  IF NOT segue.has_lease(v_worker) THEN
    RETURN;
  END IF;
  SELECT array_agg(b.o_first ORDER BY b.o_n), array_agg(b.o_before ORDER BY b.o_n), array_agg(b.o_count ORDER BY b.o_n),
         array_agg(b.o_bytes ORDER BY b.o_n), array_agg(b.o_hash ORDER BY b.o_n)
    INTO v_firsts, v_befores, v_counts, v_bytes, v_hashes FROM segue.batches(p_of, p_lines) b
  HAVING min(b.o_n) = 1 AND max(b.o_n) = cardinality(p_ids) AND count(*) = cardinality(p_ids);
  FOR r IN INSERT INTO segue.session (id, state, rest, needs, owner, fence, seq, bytes, hash)
           SELECT b.id, 'held', b.rest, b.needs::text[], v_worker, 1, b.count, b.bytes, decode(b.hash, 'hex')
             FROM unnest(p_ids, p_needs, p_rests, v_counts, v_bytes, v_hashes) AS b (id, needs, rest, count, bytes, hash)
            WHERE b.count > 0
           ON CONFLICT DO NOTHING RETURNING session.id LOOP
    o_n := array_position(p_ids, r.id);
    v_ats[o_n] := 0;
    RETURN NEXT;
  END LOOP;
  INSERT INTO segue.line (session, seq, at, line)
  SELECT p_ids[l.n], l.ord - v_firsts[l.n] + 1, l.upto - octet_length(l.line) - 1 - v_befores[l.n], l.line
    FROM (SELECT a.n, a.ord, a.line, sum(octet_length(a.line) + 1) OVER (ORDER BY a.ord) AS upto
            FROM unnest(p_of, p_lines) WITH ORDINALITY AS a (n, line, ord)) l
   WHERE v_ats[l.n] >= 0;
END $$;

-- Takes one session for a resume, a cancel or a look at its end, whatever its place in the queue,
-- and returns its state. A session that this worker already has is taken again: it asks only when
-- an answer was lost.
CREATE OR REPLACE FUNCTION segue.hold(p_word uuid, p_id uuid)
RETURNS TABLE (o_result text, o_fence bigint, o_seq bigint, o_bytes bigint, o_hash text, o_owner text,
               o_deaths int, o_died text, o_asked text, o_moved_to text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s segue.session; v_worker uuid := segue.who(p_word);
BEGIN
  IF NOT segue.has_lease(v_worker) THEN
    o_result := 'lease'; RETURN NEXT; RETURN;
  END IF;
  UPDATE segue.session t SET state = 'held', owner = v_worker, fence = t.fence + 1
   WHERE t.id = p_id AND NOT t.moved
     AND (t.state <> 'held' OR t.owner = v_worker OR NOT segue.has_lease(t.owner))
  RETURNING t.* INTO s;
  IF FOUND THEN
    o_result := 'ok';
  ELSE
    SELECT * INTO s FROM segue.session t WHERE t.id = p_id;
    o_result := CASE WHEN NOT FOUND THEN 'gone' WHEN s.moved AND s.state <> 'ended' THEN 'moving'
                     WHEN s.moved THEN 'moved' ELSE 'held' END;
    SELECT w.name INTO o_owner FROM segue.worker w WHERE w.id = s.owner;
  END IF;
  o_fence := s.fence; o_seq := s.seq; o_bytes := s.bytes; o_hash := encode(s.hash, 'hex');
  o_deaths := s.deaths; o_died := s.died; o_asked := s.asked; o_moved_to := s.moved_to;
  RETURN NEXT;
END $$;

-- Returns the next sessions in the queue that fit these labels, except some. Sessions with the same
-- needs (the first eight, which the index has) are looked at together: those that do not fit cost
-- one look, however many wait. With 200 kinds of needs or more, goes through the queue instead.
CREATE OR REPLACE FUNCTION segue.next_ready(p_labels text[], p_max int, p_not uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE v_kinds bigint; v_ids uuid[];
BEGIN
  WITH RECURSIVE k (needs, n) AS (
         (SELECT s.needs[1:8] COLLATE "C", 1 FROM segue.session s WHERE s.state = 'ready'
           ORDER BY s.needs[1:8] COLLATE "C" LIMIT 1)
         UNION ALL
         SELECT t.needs, k.n + 1 FROM k, LATERAL
           (SELECT s.needs[1:8] COLLATE "C" AS needs FROM segue.session s
             WHERE s.state = 'ready' AND s.needs[1:8] COLLATE "C" > k.needs
             ORDER BY s.needs[1:8] COLLATE "C" LIMIT 1) t
          WHERE k.n < 200),
       f AS (SELECT t.id FROM k, LATERAL
              (SELECT s.id, s.place FROM segue.session s
                WHERE s.state = 'ready' AND s.needs[1:8] COLLATE "C" = k.needs
                  AND s.ready_at <= clock_timestamp() AND s.needs <@ p_labels AND s.id <> ALL (p_not)
                ORDER BY s.needs[1:8] COLLATE "C", s.place LIMIT p_max) t
             WHERE k.needs <@ p_labels ORDER BY t.place LIMIT p_max)
  SELECT (SELECT count(*) FROM k), ARRAY(SELECT f.id FROM f) INTO v_kinds, v_ids;
  IF v_kinds >= 200 THEN
    v_ids := ARRAY(SELECT s.id FROM segue.session s
                    WHERE s.state = 'ready' AND s.ready_at <= clock_timestamp()
                      AND s.needs <@ p_labels AND s.id <> ALL (p_not)
                    ORDER BY s.place LIMIT p_max);
  END IF;
  RETURN v_ids;
END $$;

-- Takes the next sessions in the queue that fit the worker's labels, except those it cannot go on
-- with, and those that another takes just then. Each comes with its row as it is then, and with its
-- log if that has at most p_bytes. A log whose length differs from the row's is older than the row.
CREATE OR REPLACE FUNCTION segue.claim(p_word uuid, p_max int, p_not uuid[], p_bytes int)
RETURNS TABLE (o_id uuid, o_fence bigint, o_seq bigint, o_bytes bigint, o_hash text, o_deaths int,
               o_died text, o_asked text, o_log bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE v_worker uuid := segue.who(p_word); v_labels text[]; v_ids uuid[]; v_not uuid[] := p_not; v_left int := p_max; v_got int;
BEGIN
  SELECT w.labels INTO v_labels FROM segue.worker w
   WHERE w.id = v_worker AND w.lease_until > clock_timestamp();
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM segue.settle();
  WHILE v_left > 0 LOOP
    v_ids := segue.next_ready(v_labels, v_left, v_not);
    EXIT WHEN cardinality(v_ids) = 0;
    RETURN QUERY
    WITH c AS (SELECT s.id FROM segue.session s
                WHERE s.id = ANY (v_ids) AND s.state IS NOT DISTINCT FROM 'ready'
                  AND s.ready_at <= clock_timestamp()
                  FOR UPDATE SKIP LOCKED),
         u AS (UPDATE segue.session s SET state = 'held', owner = v_worker, fence = s.fence + 1
                 FROM c WHERE s.id = c.id RETURNING s.*)
    SELECT u.id, u.fence, u.seq, u.bytes, encode(u.hash, 'hex'), u.deaths, u.died, u.asked,
           CASE WHEN u.bytes <= p_bytes THEN
             (SELECT string_agg(l.line || '\x0a'::bytea, ''::bytea ORDER BY l.seq)
                FROM segue.line l WHERE l.session = u.id) END
      FROM u ORDER BY u.place;
    GET DIAGNOSTICS v_got = ROW_COUNT;
    EXIT WHEN v_got = cardinality(v_ids); -- as many as wanted, or all
    v_left := v_left - v_got;
    v_not := v_not || v_ids;
  END LOOP;
END $$;

-- Writes all lines and the row, or nothing. Repeating a call that was done returns ok. Writing the
-- last record also releases the session, and nothing comes after it.
CREATE OR REPLACE FUNCTION segue.append(p_word uuid, p_id uuid, p_fence bigint, p_seq bigint, p_rest text,
                                        p_turn boolean, p_lines bytea[])
RETURNS TABLE (o_result text, o_seq bigint, o_hash text, o_asked text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s segue.session; v_worker uuid := segue.who(p_word); v_new bigint := p_seq + cardinality(p_lines);
        v_line bytea; v_bytes bigint := 0; v_hash bytea; v_ats bigint[] := '{}';
BEGIN
  FOREACH v_line IN ARRAY p_lines LOOP
    v_ats := v_ats || v_bytes;
    v_bytes := v_bytes + octet_length(v_line) + 1;
  END LOOP;
  v_hash := decode(segue.hash_of(v_line), 'hex');
  UPDATE segue.session t
     SET seq = v_new, bytes = t.bytes + v_bytes, hash = v_hash, rest = p_rest,
         state = CASE WHEN p_rest = 'ended' THEN 'ended' ELSE t.state END,
         owner = CASE WHEN p_rest = 'ended' THEN NULL ELSE t.owner END,
         asked = CASE WHEN p_rest = 'ended' OR (t.asked = 'resume' AND (p_turn OR p_rest <> 'idle')) THEN NULL
                      ELSE t.asked END,
         deaths = CASE WHEN p_turn THEN 0 ELSE t.deaths END,
         dead = CASE WHEN p_turn THEN '{}' ELSE t.dead END
   WHERE t.id = p_id AND t.fence = p_fence AND t.seq = p_seq AND t.state IS NOT DISTINCT FROM 'held'
     AND t.owner = v_worker AND t.rest <> 'ended' AND v_bytes > 0
  RETURNING t.* INTO s;
  IF FOUND THEN
    INSERT INTO segue.line (session, seq, at, line)
    SELECT p_id, p_seq + l.n, s.bytes - v_bytes + l.a, l.l FROM unnest(v_ats, p_lines) WITH ORDINALITY AS l (a, l, n);
    o_result := 'ok';
  ELSE
    SELECT * INTO s FROM segue.session t WHERE t.id = p_id;
    o_result := CASE WHEN NOT FOUND THEN 'gone'
                     WHEN s.fence <> p_fence OR s.state NOT IN ('held', 'ended') THEN 'fenced'
                     WHEN s.seq = v_new AND s.hash = v_hash THEN 'ok'
                     WHEN s.state = 'ended' OR s.owner IS DISTINCT FROM v_worker THEN 'fenced'
                     ELSE 'conflict' END;
  END IF;
  o_seq := s.seq; o_hash := encode(s.hash, 'hex'); o_asked := s.asked;
  RETURN NEXT;
END $$;

-- Writes the batches of many sessions in one statement, and returns the position of each that was
-- written, from 1 on. segue.append says what became of the others. p_of: as for segue.begin_all.
CREATE OR REPLACE FUNCTION segue.append_all(p_word uuid, p_ids uuid[], p_fences bigint[], p_seqs bigint[],
                                            p_rests text[], p_turns boolean[], p_of bigint[], p_lines bytea[])
RETURNS TABLE (o_n bigint, o_asked text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off -- few of many, by key
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE v_worker uuid := segue.who(p_word); v_ats bigint[] := array_fill(-1, ARRAY[cardinality(p_ids)]);
        v_firsts bigint[]; v_befores bigint[]; v_counts bigint[]; v_bytes bigint[]; v_hashes text[]; r record;
BEGIN
  SELECT array_agg(b.o_first ORDER BY b.o_n), array_agg(b.o_before ORDER BY b.o_n), array_agg(b.o_count ORDER BY b.o_n),
         array_agg(b.o_bytes ORDER BY b.o_n), array_agg(b.o_hash ORDER BY b.o_n)
    INTO v_firsts, v_befores, v_counts, v_bytes, v_hashes FROM segue.batches(p_of, p_lines) b
  HAVING min(b.o_n) = 1 AND max(b.o_n) = cardinality(p_ids) AND count(*) = cardinality(p_ids);
  FOR r IN UPDATE segue.session t
              SET seq = b.seq + b.count, bytes = t.bytes + b.bytes, hash = decode(b.hash, 'hex'), rest = b.rest,
                  state = CASE WHEN b.rest = 'ended' THEN 'ended' ELSE t.state END,
                  owner = CASE WHEN b.rest = 'ended' THEN NULL ELSE t.owner END,
                  asked = CASE WHEN b.rest = 'ended' OR (t.asked = 'resume' AND (b.turn OR b.rest <> 'idle')) THEN NULL
                               ELSE t.asked END,
                  deaths = CASE WHEN b.turn THEN 0 ELSE t.deaths END,
                  dead = CASE WHEN b.turn THEN '{}' ELSE t.dead END
             FROM unnest(p_ids, p_fences, p_seqs, p_rests, p_turns, v_counts, v_bytes, v_hashes)
                  WITH ORDINALITY AS b (id, fence, seq, rest, turn, count, bytes, hash, n)
            WHERE t.id = b.id AND t.fence = b.fence AND t.seq = b.seq AND t.state IS NOT DISTINCT FROM 'held'
              AND t.owner = v_worker AND t.rest <> 'ended' AND b.count > 0
           RETURNING b.n, t.bytes - b.bytes AS at, t.asked LOOP
    v_ats[r.n] := r.at;
    o_n := r.n; o_asked := r.asked;
    RETURN NEXT;
  END LOOP;
  INSERT INTO segue.line (session, seq, at, line)
  SELECT p_ids[l.n], p_seqs[l.n] + l.ord - v_firsts[l.n] + 1, v_ats[l.n] + l.upto - octet_length(l.line) - 1 - v_befores[l.n], l.line
    FROM (SELECT a.n, a.ord, a.line, sum(octet_length(a.line) + 1) OVER (ORDER BY a.ord) AS upto
            FROM unnest(p_of, p_lines) WITH ORDINALITY AS a (n, line, ord)) l
   WHERE v_ats[l.n] >= 0;
END $$;

-- Releases a session; without a record it never began. p_wait_ms: how long nobody takes it. p_why:
-- why the worker cannot go on with it. p_drop: the request cannot be met.
CREATE OR REPLACE FUNCTION segue.release(p_word uuid, p_id uuid, p_fence bigint, p_wait_ms bigint, p_why text,
                                         p_drop boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_rest text;
BEGIN
  UPDATE segue.session t
     SET state = CASE WHEN p_drop THEN t.rest ELSE segue.rest_of(t.rest, t.asked, t.after, t.seq) END, owner = NULL,
         asked = CASE WHEN p_drop OR t.rest = 'ended' THEN NULL ELSE t.asked END,
         ready_at = clock_timestamp() + p_wait_ms * interval '1 millisecond', why = p_why
   WHERE t.id = p_id AND t.fence = p_fence AND t.state IS NOT DISTINCT FROM 'held' AND t.owner = segue.who(p_word)
  RETURNING t.state INTO v_rest;
  IF v_rest = 'ready' THEN
    PERFORM pg_notify('segue', 'ready');
  END IF;
  RETURN coalesce(v_rest, 'fenced');
END $$;

-- Marks a session that goes on in another store, p_to: nobody takes it here any more.
CREATE OR REPLACE FUNCTION segue.set_aside(p_word uuid, p_id uuid, p_fence bigint, p_to text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE segue.session t SET moved = true, moved_to = p_to, state = 'ended', rest = 'ended', owner = NULL
   WHERE t.id = p_id AND t.fence = p_fence AND t.state IS NOT DISTINCT FROM 'held' AND t.owner = segue.who(p_word)
     AND t.rest <> 'ended';
  RETURN FOUND;
END $$;

-- Takes a session that is moved here, in transit: nobody else takes it before segue.arrive. One that
-- is here already goes on after its p_bytes bytes, unless it has ended here. p_begins: the source goes on;
-- without, only what is in transit is taken.
CREATE OR REPLACE FUNCTION segue.move_in(p_word uuid, p_id uuid, p_needs text[], p_bytes bigint,
                                         p_begins boolean)
RETURNS TABLE (o_result text, o_fence bigint, o_seq bigint, o_bytes bigint, o_hash text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s segue.session; v_worker uuid := segue.who(p_word);
BEGIN
  IF NOT segue.has_lease(v_worker) THEN
    o_result := 'lease'; RETURN NEXT; RETURN;
  END IF;
  IF p_begins AND p_bytes = 0 THEN
    INSERT INTO segue.session (id, state, owner, needs, moved) VALUES (p_id, 'held', v_worker, p_needs, true)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      DELETE FROM segue.line l WHERE l.session = p_id; -- left over from a removed session of this id
    END IF;
  END IF;
  UPDATE segue.session t
     SET state = 'held', owner = v_worker, fence = t.fence + 1, rest = 'idle', moved = true,
         moved_to = NULL, asked = NULL, asked_by = NULL
   WHERE t.id = p_id AND t.bytes = p_bytes AND (t.state <> 'ended' OR t.moved)
     AND (p_begins OR (t.moved AND t.state <> 'ended'))
     AND (t.state <> 'held' OR t.owner = v_worker OR NOT segue.has_lease(t.owner))
  RETURNING t.* INTO s;
  o_result := CASE WHEN FOUND THEN 'ok' ELSE 'there' END;
  o_fence := s.fence; o_seq := s.seq; o_bytes := s.bytes; o_hash := encode(s.hash, 'hex');
  RETURN NEXT;
END $$;

-- Ends the transit of a session whose source is set aside. Repeating it returns true.
CREATE OR REPLACE FUNCTION segue.arrive(p_word uuid, p_id uuid, p_fence bigint, p_rest text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE segue.session t SET moved = false, rest = p_rest, deaths = 0, dead = '{}', died = NULL
   WHERE t.id = p_id AND t.fence = p_fence AND t.state IS NOT DISTINCT FROM 'held' AND t.owner = segue.who(p_word)
     AND (t.moved OR t.rest = p_rest);
  RETURN FOUND;
END $$;

-- Removes a session that never began, as if it had not been made: the worker's, or one that nobody has.
CREATE OR REPLACE FUNCTION segue.forget(p_word uuid, p_id uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM segue.session s
   WHERE s.id = p_id AND s.seq = 0 AND (s.state <> 'held' OR s.owner = segue.who(p_word));
  RETURN FOUND;
END $$;

-- Asks something of a session from elsewhere (cancel, resume). Its owner sees it; without one,
-- whoever takes the session next. Returns its state, or "going" if it runs and need not be resumed.
CREATE OR REPLACE FUNCTION segue.ask(p_id uuid, p_what text, p_by text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_state text;
BEGIN
  UPDATE segue.session t
     SET asked = p_what, asked_by = p_by,
         state = CASE WHEN t.state = 'idle' THEN segue.rest_of(t.rest, p_what, t.after, t.seq) ELSE t.state END
   WHERE t.id = p_id AND t.state <> 'ended' AND NOT t.moved
     AND (p_what = 'cancel' OR (p_what = 'resume' AND t.rest = 'idle' AND t.asked IS DISTINCT FROM 'cancel'))
  RETURNING t.state INTO v_state;
  IF FOUND THEN
    PERFORM pg_notify('segue', 'ask');
    RETURN v_state;
  END IF;
  SELECT CASE WHEN t.state = 'ended' OR t.moved THEN 'ended' ELSE 'going' END INTO v_state
    FROM segue.session t WHERE t.id = p_id;
  RETURN coalesce(v_state, 'gone');
END $$;

-- Keeps what a person says to a session for its owner, and returns its state: its owner sees it, or
-- whoever takes it next.
CREATE OR REPLACE FUNCTION segue.say(p_id uuid, p_said text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_state text;
BEGIN
  UPDATE segue.session t SET said = t.said || (gen_random_uuid()::text || ' ' || p_said)
   WHERE t.id = p_id AND t.state <> 'ended' AND NOT t.moved AND cardinality(t.said) < 500
  RETURNING t.state INTO v_state;
  IF FOUND THEN
    PERFORM pg_notify('segue', 'ask');
  END IF;
  RETURN coalesce(v_state, 'ended');
END $$;

-- Forgets what was said to a session up to p_heard, which is recorded, and returns the rest, a line each.
CREATE OR REPLACE FUNCTION segue.heard(p_word uuid, p_id uuid, p_fence bigint, p_heard text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_said text[];
BEGIN
  UPDATE segue.session t SET said = t.said[array_position(t.said, p_heard) + 1 :]
   WHERE t.id = p_id AND t.fence = p_fence AND t.owner = segue.who(p_word) AND p_heard = ANY (t.said);
  SELECT t.said INTO v_said FROM segue.session t WHERE t.id = p_id AND t.fence = p_fence;
  RETURN coalesce(array_to_string(v_said, E'\n'), '');
END $$;

-- Releases sessions held by workers without a lease, and ends the connections of such workers: one
-- that was cut off in the middle of a pipeline keeps its rows locked.
CREATE OR REPLACE FUNCTION segue.sweep() RETURNS int
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n int;
BEGIN
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a
    JOIN segue.worker w ON a.application_name = 'segue ' || w.id
   WHERE a.datname = current_database() AND a.usename = current_user
     AND a.state <> 'idle' -- it holds no row, and a pooler may give it to a worker that lives
     AND a.pid <> pg_backend_pid() AND w.lease_until < clock_timestamp();
  n := segue.sweep_sessions();
  RETURN n;
END $$;

CREATE OR REPLACE FUNCTION segue.sweep_sessions() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n int; v_gone uuid[];
BEGIN
  DELETE FROM segue.session s WHERE s.state = 'held' AND s.seq = 0 AND NOT segue.has_lease(s.owner);
  v_gone := ARRAY(SELECT w.id FROM segue.worker w -- locked: segue.gave_up comes before or after this
                   WHERE w.lease_until <= clock_timestamp()
                     AND EXISTS (SELECT FROM segue.session s WHERE s.state = 'held' AND s.owner = w.id)
                     FOR SHARE SKIP LOCKED);
  WITH c AS (SELECT s.id, w.name, coalesce(w.lives, false) AS lives
               FROM segue.session s LEFT JOIN segue.worker w ON w.id = s.owner
              WHERE s.state = 'held' AND (w.id IS NULL OR w.id = ANY (v_gone))
              ORDER BY s.place LIMIT 1000 FOR UPDATE OF s SKIP LOCKED)
  UPDATE segue.session s
     SET state = segue.rest_of(s.rest, s.asked, s.after, s.seq), -- after too many deaths the next owner stops it
         owner = NULL, fence = s.fence + 1, deaths = s.deaths + (NOT c.lives)::int,
         dead = CASE WHEN c.lives THEN s.dead ELSE s.dead || s.owner END,
         died = CASE WHEN c.lives THEN s.died ELSE c.name END
    FROM c WHERE s.id = c.id AND s.state = 'held';
  GET DIAGNOSTICS n = ROW_COUNT;
  DELETE FROM segue.worker w WHERE w.lease_until < clock_timestamp() - interval '1 day'
     AND NOT EXISTS (SELECT FROM segue.session s WHERE s.state = 'held' AND s.owner = w.id);
  IF n > 0 THEN
    PERFORM pg_notify('segue', 'ready');
  END IF;
  RETURN n;
END $$;

-- Tells an idle worker whether the queue holds something for it, and how the providers stand: a
-- line for each, with its places (0: no limit), the ms to leave it alone, and its name.
CREATE OR REPLACE FUNCTION segue.poll(p_word uuid)
RETURNS TABLE (o_ready boolean, o_providers text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT cardinality(segue.next_ready(w.labels, 1, '{}')) > 0
                     FROM segue.worker w WHERE w.id = segue.who(p_word)), false) OR EXISTS (SELECT FROM segue.over),
         (SELECT string_agg(coalesce(p.seats, 0) || ' ' || greatest(0, coalesce(ceil(extract(epoch
                   FROM p.cool_until - clock_timestamp()) * 1000), 0)) || ' ' || p.name, E'\n')
            FROM segue.provider p WHERE p.seats IS NOT NULL OR p.cool_until > clock_timestamp())
$$;

-- Takes a place at a provider for the worker's call number p_n. Returns ok, full, free (no limit)
-- or lease (it has ended). Repeating it returns ok.
CREATE OR REPLACE FUNCTION segue.seat_take(p_word uuid, p_n bigint, p_provider text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_worker uuid := segue.who(p_word); v_seats int; v_taken bigint;
BEGIN
  IF NOT segue.has_lease(v_worker) THEN
    RETURN 'lease';
  END IF;
  SELECT p.seats INTO v_seats FROM segue.provider p WHERE p.name = p_provider FOR UPDATE;
  IF v_seats IS NULL THEN
    RETURN 'free';
  END IF;
  IF EXISTS (SELECT FROM segue.seat t WHERE t.worker = v_worker AND t.n = p_n) THEN
    RETURN 'ok';
  END IF;
  SELECT count(*) INTO v_taken FROM segue.seat t
   WHERE t.provider = p_provider AND segue.has_lease(t.worker);
  IF v_taken >= v_seats THEN
    RETURN 'full';
  END IF;
  INSERT INTO segue.seat (worker, n, provider) VALUES (v_worker, p_n, p_provider);
  RETURN 'ok';
END $$;

CREATE OR REPLACE FUNCTION segue.seat_leave(p_word uuid, p_n bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM segue.seat t WHERE t.worker = segue.who(p_word) AND t.n = p_n;
  IF FOUND THEN
    PERFORM pg_notify('segue', 'provider');
  END IF;
END $$;

-- Limits how many calls all workers together make at once; null: no limit. A row without a limit
-- whose pause is over has no meaning.
CREATE OR REPLACE FUNCTION segue.seat_limit(p_provider text, p_seats int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO segue.provider (name, seats) VALUES (p_provider, p_seats)
  ON CONFLICT (name) DO UPDATE SET seats = EXCLUDED.seats;
  PERFORM pg_notify('segue', 'provider');
END $$;

-- Takes an attempt of a call for the caps of its day, unless one of them is reached: then "CAP UNIT
-- USED", both counted from 1. p_limits: tokens, cost, ms and calls of each cap; below 1: no limit.
-- A call that has begun is in the number of calls. Repeating it returns ok.
CREATE OR REPLACE FUNCTION segue.spent_take(p_word uuid, p_session uuid, p_call bigint, p_attempt int,
  p_caps text[], p_limits bigint[]) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_day date := (clock_timestamp() AT TIME ZONE 'UTC')::date; v_cap text; v_used numeric[]; v_begun boolean;
BEGIN
  IF NOT segue.has_lease(segue.who(p_word)) OR NOT EXISTS (SELECT FROM segue.session s
       WHERE s.id = p_session AND s.state = 'held' AND s.owner = segue.who(p_word)) THEN
    RETURN 'lease';
  END IF;
  FOR v_cap IN SELECT DISTINCT c FROM unnest(p_caps) c ORDER BY c LOOP -- in one order for all
    PERFORM pg_advisory_xact_lock(hashtextextended('segue ' || v_cap, 13));
  END LOOP;
  v_begun := EXISTS (SELECT FROM segue.spent t WHERE t.session = p_session AND t.call = p_call AND t.begun);
  FOR i IN 1 .. cardinality(p_caps) LOOP
    SELECT ARRAY[coalesce(sum(t.tokens), 0), coalesce(sum(t.cost), 0), coalesce(sum(t.ms), 0),
                 count(DISTINCT (t.session, t.call)) FILTER (WHERE t.begun)]
      INTO v_used FROM segue.spent t WHERE t.day = v_day AND t.cap = p_caps[i];
    FOR u IN 1 .. 4 LOOP
      IF p_limits[i * 4 - 4 + u] > 0 AND v_used[u] >= p_limits[i * 4 - 4 + u]
         AND NOT (u = 4 AND v_begun) THEN
        RETURN i || ' ' || u || ' ' || v_used[u];
      END IF;
    END LOOP;
  END LOOP;
  DELETE FROM segue.spent t WHERE t.day < v_day - 40;
  INSERT INTO segue.spent (day, cap, session, call, attempt, begun)
  SELECT v_day, c, p_session, p_call, p_attempt, NOT v_begun FROM unnest(p_caps) c
  ON CONFLICT DO NOTHING;
  RETURN 'ok';
END $$;

-- Books what an attempt used. Repeating it changes nothing.
CREATE OR REPLACE FUNCTION segue.spent_add(p_word uuid, p_session uuid, p_call bigint, p_attempt int,
  p_caps text[], p_tokens bigint, p_cost bigint, p_ms bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT segue.has_lease(segue.who(p_word)) OR least(p_tokens, p_cost, p_ms) < 0 THEN
    RETURN 'lease';
  END IF;
  INSERT INTO segue.spent (day, cap, session, call, attempt, tokens, cost, ms)
  SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date, c, p_session, p_call, p_attempt, p_tokens, p_cost, p_ms
    FROM unnest(p_caps) c
  ON CONFLICT (day, cap, session, call, attempt) DO UPDATE
     SET tokens = EXCLUDED.tokens, cost = EXCLUDED.cost, ms = EXCLUDED.ms;
  RETURN 'ok';
END $$;

-- Leaves a provider alone for a while, as it asked: the later end counts, by the server's clock.
CREATE OR REPLACE FUNCTION segue.cool(p_provider text, p_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO segue.provider (name, cool_until)
  VALUES (p_provider, clock_timestamp() + p_ms * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET cool_until = greatest(provider.cool_until, EXCLUDED.cool_until);
  PERFORM pg_notify('segue', 'provider');
END $$;

-- Reads the bytes of a log from p_at on, p_max at most; nothing at its end.
CREATE OR REPLACE FUNCTION segue.read(p_id uuid, p_at bigint, p_max int) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE low bigint := 1; high bigint; middle bigint; v_at bigint; piece bytea; left_over int := p_max;
        out_bytes bytea := ''; r record; skip bigint;
BEGIN
  SELECT s.seq INTO high FROM segue.session s WHERE s.id = p_id AND p_at < s.bytes;
  IF NOT FOUND OR p_at < 0 THEN
    RETURN ''::bytea;
  END IF;
  WHILE low < high LOOP -- find the last record that begins at or before p_at
    middle := (low + high + 1) / 2;
    SELECT l.at INTO v_at FROM segue.line l WHERE l.session = p_id AND l.seq = middle;
    IF v_at <= p_at THEN low := middle; ELSE high := middle - 1; END IF;
  END LOOP;
  skip := NULL;
  FOR r IN SELECT l.seq, l.at, octet_length(l.line) AS n FROM segue.line l
            WHERE l.session = p_id AND l.seq >= low ORDER BY l.seq LOOP
    skip := greatest(p_at - r.at, 0);
    IF skip < r.n THEN
      SELECT substring(l.line FROM skip::int + 1 FOR left_over) INTO piece
        FROM segue.line l WHERE l.session = p_id AND l.seq = r.seq;
    ELSE
      piece := ''::bytea;
    END IF;
    IF skip <= r.n AND octet_length(piece) < left_over THEN
      piece := piece || '\x0a'::bytea;
    END IF;
    out_bytes := out_bytes || piece;
    left_over := left_over - octet_length(piece);
    EXIT WHEN left_over <= 0;
  END LOOP;
  RETURN out_bytes;
END $$;

-- Begins a blob, whose parts are written in the same transaction. Parts that are there and are not the
-- blob's are removed.
CREATE OR REPLACE FUNCTION segue.blob_begin(p_sha text, p_bytes bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_sha bytea := decode(p_sha, 'hex');
BEGIN
  IF octet_length(v_sha) <> 32 OR p_bytes NOT BETWEEN 0 AND 1 << 30 THEN -- no value of the server's is larger
    RAISE EXCEPTION 'this is no blob';
  END IF;
  INSERT INTO segue.blob (sha256, bytes) VALUES (v_sha, p_bytes)
  ON CONFLICT (sha256) DO UPDATE SET put_at = clock_timestamp() WHERE blob.bytes = EXCLUDED.bytes;
  IF sha256((SELECT string_agg(p.data, ''::bytea ORDER BY p.part) FROM segue.blob_part p WHERE p.sha256 = v_sha))
     IS DISTINCT FROM v_sha THEN
    UPDATE segue.blob b SET bytes = p_bytes WHERE b.sha256 = v_sha; -- one at a time
    DELETE FROM segue.blob_part p WHERE p.sha256 = v_sha;
    RETURN true;
  END IF;
  RETURN false;
END $$;

-- A blob that was written by another transaction gets no more parts.
CREATE OR REPLACE FUNCTION segue.blob_part_put(p_sha text, p_part int, p_data bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO segue.blob_part (sha256, part, data)
  SELECT decode(p_sha, 'hex'), p_part, p_data
   WHERE NOT EXISTS (SELECT FROM segue.blob_part p WHERE p.sha256 = decode(p_sha, 'hex')
                        AND p.xmin <> pg_current_xact_id()::xid)
$$;

-- For the owner only: drops a blob that nobody has put for a day, so that no record to come names
-- it. Returns whether it is gone.
CREATE OR REPLACE FUNCTION segue.blob_drop(p_sha text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM segue.blob b WHERE b.sha256 = decode(p_sha, 'hex')
     AND b.put_at < clock_timestamp() - interval '1 day';
  RETURN NOT EXISTS (SELECT FROM segue.blob b WHERE b.sha256 = decode(p_sha, 'hex'));
END $$;

-- Returns whether a line of the ledger says the truth: the session has this record, which is what the
-- entry says that it is. Only the owner says that a log was removed or cut.
CREATE OR REPLACE FUNCTION segue.is_head(p_entry jsonb) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN p_entry->>'type' IN ('end', 'stop', 'held') THEN EXISTS
      (SELECT FROM segue.line l WHERE l.session = (p_entry->>'session')::uuid AND l.seq = (p_entry->>'seq')::bigint
          AND segue.hash_of(l.line) = p_entry->>'head'
          AND (p_entry->>'type' = 'held' OR position(convert_to('"type":"session_' || (p_entry->>'type') || '"', 'UTF8')
                                                     IN substring(l.line FROM 1 FOR 160)) > 0))
    ELSE has_function_privilege(session_user, 'segue.remove(uuid)', 'EXECUTE') END
$$;

-- Writes the n-th line of a chain and those after it, unless another worker was quicker.
CREATE OR REPLACE FUNCTION segue.chain_put(p_name text, p_n bigint, p_lines bytea[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_last bigint; v_hash text; v_line bytea; v_entry jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('segue.chain.' || p_name));
  SELECT c.n, segue.hash_of(c.line) INTO v_last, v_hash FROM segue.chain c WHERE c.name = p_name ORDER BY c.n DESC LIMIT 1;
  v_last := coalesce(v_last, 0);
  v_hash := coalesce(v_hash, repeat('0', 64));
  IF v_last <> p_n - 1 THEN
    RETURN false;
  END IF;
  FOREACH v_line IN ARRAY p_lines LOOP -- each is as record_line_close makes it
    v_last := v_last + 1;
    v_hash := encode(sha256(convert_to(v_hash, 'UTF8') || substring(v_line FROM 1 FOR octet_length(v_line) - 75)), 'hex');
    v_entry := convert_from(v_line, 'UTF8')::jsonb;
    IF v_hash IS DISTINCT FROM segue.hash_of(v_line) OR (v_entry->>'n')::bigint IS DISTINCT FROM v_last
       OR (p_name = 'heads' AND NOT coalesce(segue.is_head(v_entry), false)) THEN
      RAISE EXCEPTION 'this is not the next line of %', p_name;
    END IF;
  END LOOP;
  INSERT INTO segue.chain (name, n, line)
  SELECT p_name, p_n - 1 + l.n, l.l FROM unnest(p_lines) WITH ORDINALITY AS l (l, n);
  RETURN true;
END $$;

-- Keeps what an audit read of many logs, of each that still ends as it did then. Two audits that keep the
-- same log wrote the same, so the later one counts.
CREATE OR REPLACE FUNCTION segue.keep_counted(p_ids uuid[], p_seqs bigint[], p_hashes text[], p_format int,
                                              p_last_ms bigint[], p_judgments bytea[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO segue.counted (session, seq, hash, format, last_ms, judgments)
  SELECT s.id, s.seq, s.hash, p_format, k.last_ms, k.judgments
    FROM unnest(p_ids, p_seqs, p_hashes, p_last_ms, p_judgments) AS k (id, seq, hash, last_ms, judgments)
    JOIN segue.session s ON s.id = k.id AND s.seq = k.seq AND s.hash = decode(k.hash, 'hex')
   ORDER BY s.id -- in one order, so that two audits do not wait for each other
  ON CONFLICT (session) DO UPDATE SET seq = EXCLUDED.seq, hash = EXCLUDED.hash, format = EXCLUDED.format,
    last_ms = EXCLUDED.last_ms, judgments = EXCLUDED.judgments
$$;

-- For the owner only: removes a session. Its lines are removed afterwards, in small transactions.
CREATE OR REPLACE FUNCTION segue.remove(p_id uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM segue.session s WHERE s.id = p_id AND (s.state <> 'held' OR NOT segue.has_lease(s.owner));
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM segue.counted c WHERE c.session = p_id;
  RETURN true;
END $$;

-- For the owner only: removes up to 1,000 lines of a removed session and returns how many.
CREATE OR REPLACE FUNCTION segue.remove_lines(p_id uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n bigint;
BEGIN
  DELETE FROM segue.line l WHERE l.session = p_id AND l.seq IN
    (SELECT o.seq FROM segue.line o WHERE o.session = p_id ORDER BY o.seq LIMIT 1000)
    AND NOT EXISTS (SELECT FROM segue.session s WHERE s.id = p_id);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- Finds a removed session that still has lines, because its removal was interrupted.
CREATE OR REPLACE FUNCTION segue.left_over() RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.session FROM segue.line l
   WHERE NOT EXISTS (SELECT FROM segue.session s WHERE s.id = l.session) LIMIT 1
$$;
