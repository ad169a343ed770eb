-- Says who may do what: segue_worker runs the functions and reads, segue_reader only reads. Grant
-- one of them to a login: GRANT segue_worker TO someone. All daemons of a store use the same role.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'segue_reader') THEN
    CREATE ROLE segue_reader NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'segue_worker') THEN
    CREATE ROLE segue_worker NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL; -- another init is making them just now
END $$;
REVOKE ALL ON SCHEMA segue FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA segue FROM PUBLIC;
GRANT USAGE ON SCHEMA segue TO segue_reader, segue_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA segue TO segue_reader, segue_worker;
GRANT EXECUTE ON FUNCTION segue.has_lease(uuid), segue.read(uuid, bigint, int), segue.rest_of(text, text, uuid[], bigint)
   TO segue_reader, segue_worker;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA segue TO segue_worker;
REVOKE EXECUTE ON FUNCTION segue.remove(uuid), segue.remove_lines(uuid), segue.left_over(), segue.blob_drop(text),
  segue.gave_up(uuid), segue.settle(), segue.note_over(), segue.stands(uuid, boolean), segue.pending(uuid[], boolean),
  segue.next_ready(text[], int, uuid[]), segue.batches(bigint[], bytea[]), segue.is_head(jsonb), segue.lease_end(bigint)
  FROM segue_worker;
