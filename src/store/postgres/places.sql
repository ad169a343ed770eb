-- Who has each session that has not ended, or why nobody has it, as one JSON value: see
-- shared_places. The reasons stand in the order in which a person has to deal with them.
WITH live AS (SELECT * FROM segue.worker WHERE lease_until > clock_timestamp())
SELECT coalesce(json_object_agg(s.id,
  CASE WHEN s.state = 'held' AND w.id IS NOT NULL THEN
    json_build_object('worker', w.name, 'lease_age_s',
      round(extract(epoch FROM clock_timestamp() - w.renewed)::numeric, 1))
  WHEN s.moved AND s.state = 'ended' THEN
    json_build_object('waits', 'it was moved to ' || coalesce(s.moved_to, 'another store'),
      'moved_to', coalesce(s.moved_to, 'another store'))
  ELSE json_build_object('waits', CASE
    WHEN s.moved THEN 'it was being copied here: repeat that segue store import with the same options'
    WHEN NOT EXISTS (SELECT FROM live) THEN 'there is no worker'
    WHEN NOT EXISTS (SELECT FROM live l WHERE s.needs <@ l.labels) THEN coalesce(
      (SELECT 'no worker has label ' || string_agg(n, ', ') FROM unnest(s.needs) n
        WHERE NOT EXISTS (SELECT FROM live l WHERE n = ANY (l.labels))),
      'no worker has all of the labels ' || array_to_string(s.needs, ', '))
    WHEN s.why IS NOT NULL THEN s.why
    WHEN s.ready_at > clock_timestamp() THEN 'a worker gave it back; it is taken again in '
      || ceil(extract(epoch FROM s.ready_at - clock_timestamp())) || ' s'
    ELSE 'until a worker has a place' END) END), '{}'::json)
  FROM segue.session s LEFT JOIN live w ON w.id = s.owner
 WHERE s.seq > 0 AND (s.state = 'ready' OR (s.state = 'held' AND w.id IS NOT NULL) OR s.moved)
