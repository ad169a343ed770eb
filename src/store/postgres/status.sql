-- What segue store status shows, as one JSON value.
SELECT json_build_object(
  'version', (SELECT version FROM segue.meta),
  'server', current_setting('server_version'),
  'sessions', (SELECT coalesce(json_object_agg(state, n), '{}'::json) FROM
    (SELECT state, count(*) AS n FROM segue.session WHERE seq > 0 GROUP BY state) c),
  'workers', (SELECT coalesce(json_agg(json_build_object(
     'id', w.id, 'name', w.name, 'labels', w.labels, 'program', w.program,
     'lease_s', round(extract(epoch FROM w.lease_until - clock_timestamp())::numeric, 1),
     'holds', (SELECT count(*) FROM segue.session s WHERE s.state = 'held' AND s.owner = w.id))
     ORDER BY w.begun), '[]'::json) FROM segue.worker w),
  'providers', (SELECT coalesce(json_agg(json_build_object(
     'name', p.name, 'limit', p.seats, 'taken', (SELECT count(*) FROM segue.seat t
       WHERE t.provider = p.name AND segue.has_lease(t.worker)),
     'cools_s', greatest(0, round(extract(epoch FROM p.cool_until - clock_timestamp())::numeric, 1)))
     ORDER BY p.name), '[]'::json) FROM segue.provider p
     WHERE p.seats IS NOT NULL OR p.cool_until > clock_timestamp()),
  'spent', (SELECT coalesce(json_agg(json_build_object(
     'cap', s.cap, 'tokens', s.tokens, 'cost', s.cost / 1e9, 'time', s.ms, 'calls', s.calls) ORDER BY s.cap), '[]'::json)
     FROM (SELECT t.cap, sum(t.tokens) AS tokens, sum(t.cost) AS cost, sum(t.ms) AS ms,
                  count(DISTINCT (t.session, t.call)) FILTER (WHERE t.begun) AS calls
             FROM segue.spent t WHERE t.day = (clock_timestamp() AT TIME ZONE 'UTC')::date GROUP BY t.cap) s),
  'records', (SELECT coalesce(sum(seq), 0) FROM segue.session),
  'bytes', json_build_object(
     'logs', pg_total_relation_size('segue.line'),
     'sessions', pg_total_relation_size('segue.session'),
     'blobs', pg_total_relation_size('segue.blob_part')))
