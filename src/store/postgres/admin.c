/* Makes the tables of a shared store and reports its state. */
#include "store/shared.h"

#include "base/log.h"
#include "base/resource.h"
#include "store/postgres/base.h"
#include "store/postgres/shared.h"

#include <stdio.h>
#include <string.h>

/* Lets only one init run at a time in the whole database. */
#define INIT_LOCK "SELECT pg_advisory_xact_lock(7303014)"

/* The first file makes version 1 of the tables, each later one brings them to the next version. */
static const char *const table_files[BASE_VERSION] = {
    "store/postgres/schema.sql",    "store/postgres/upgrade_2.sql", "store/postgres/upgrade_3.sql",
    "store/postgres/upgrade_4.sql", "store/postgres/upgrade_5.sql", "store/postgres/upgrade_6.sql",
    "store/postgres/upgrade_7.sql", "store/postgres/upgrade_8.sql", "store/postgres/upgrade_9.sql"};
static const char *const rights_files[] = {"store/postgres/functions.sql",
                                           "store/postgres/roles.sql"};

struct initing {
  struct conn *conn; /* NULL: the SQL is only printed */
  struct buf *out;
  enum conn_failure failure;
};

static const char *sql_file(const char *name) {
  const struct resource *r = resource_find(name);
  if (r == NULL)
    BUG("%s is not compiled in", name);
  return r->p;
}

/* Connects without checking the tables, which need not exist yet. */
static struct conn *admin_open(const char *url, char shown[URL_SHOWN_BYTES], struct err *err) {
  struct url_options options;
  enum conn_failure failure;
  struct conn *conn = NULL;
  if (url_read(url, &options, shown, err))
    conn = conn_open(&options, shown, "segue store", &failure, err);
  url_deinit(&options);
  return conn;
}

/* Returns -1 with err set, or 0 if there are no tables yet. */
static int tables_version(struct conn *conn, struct err *err) {
  enum conn_failure failure;
  int version = -1;
  PGresult *answer = conn_ask(conn, "SELECT to_regclass('segue.meta') IS NOT NULL",
                              LIMIT_STORE_ASK_MS, NULL, 0, false, &failure, err);
  if (answer == NULL)
    return -1;
  bool there = conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  if (!there)
    return 0;
  answer = conn_ask(conn, "SELECT version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL, 0, false,
                    &failure, err);
  if (answer != NULL)
    version = conn_rows(answer) > 0 ? (int)conn_number(answer, 0, 0) : 0;
  conn_free(answer);
  return version;
}

static bool check_version(int version, const char *shown, struct err *err) {
  if (version < 0)
    return false;
  return version <= BASE_VERSION ||
         err_set(err, ERR_INVALID,
                 "the tables of the store %s have version %d, this program knows %d: use the newer "
                 "segue that made them",
                 shown, version, BASE_VERSION);
}

static void tell_init(int version, const char *shown, struct buf *out) {
  if (version == 0)
    buf_printf(out, "created the tables of version %d in %s\n", BASE_VERSION, shown);
  else if (version < BASE_VERSION)
    buf_printf(out, "upgraded the tables in %s from version %d to %d\n", shown, version,
               BASE_VERSION);
  else
    buf_printf(
        out,
        "the tables in %s already have version %d; functions and rights are as they should be\n",
        shown, version);
}

static bool init_do(struct initing *init, const char *sql, struct err *err) {
  if (init->conn != NULL)
    return conn_script(init->conn, sql, &init->failure, err);
  buf_puts(init->out, sql);
  return true;
}

static bool init_from(struct initing *init, int version, struct err *err) {
  bool ok = true;
  for (size_t i = (size_t)version; ok && i < ARRAY_LEN(table_files); i++)
    ok = init_do(init, sql_file(table_files[i]), err);
  for (size_t i = 0; ok && i < ARRAY_LEN(rights_files); i++)
    ok = init_do(init, sql_file(rights_files[i]), err);
  return ok;
}

static bool init_tables(struct conn *conn, const char *shown, struct buf *out, struct err *err) {
  struct initing init = {.conn = conn, .out = out};
  if (!init_do(&init, "BEGIN; " INIT_LOCK, err))
    return false;
  int version = tables_version(conn, err);
  bool ok = check_version(version, shown, err) && init_from(&init, version, err) &&
            init_do(&init, "COMMIT", err);
  if (ok)
    tell_init(version, shown, out);
  else if (strstr(err->text, "create role") != NULL)
    (void)err_set(
        err, ERR_INVALID,
        "this login cannot create roles: let an administrator run CREATE ROLE segue_reader "
        "NOLOGIN; CREATE ROLE segue_worker NOLOGIN; then run segue store init again");
  return ok;
}

bool shared_init(const char *url, bool dry_run, struct buf *out, struct err *err) {
  char shown[URL_SHOWN_BYTES];
  struct conn *conn = admin_open(url, shown, err);
  if (conn == NULL)
    return false;
  bool ok;
  if (dry_run) {
    struct initing init = {.out = out};
    int version = tables_version(conn, err);
    ok = check_version(version, shown, err);
    if (ok)
      buf_puts(out, "BEGIN;\n" INIT_LOCK ";\n");
    ok = ok && init_from(&init, version, err);
    if (ok)
      buf_puts(out, "COMMIT;\n");
  } else {
    ok = init_tables(conn, shown, out, err);
  }
  conn_close(conn);
  return ok;
}

/* --- leftovers --- */

bool shared_tidy(const char *url, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(url, err);
  bool more = true;
  while (more && pg != NULL) {
    PGresult *answer =
        base_ask(pg, "SELECT segue.left_over()::text", NULL, 0, false, &failure, err);
    bool ok = answer != NULL;
    more = ok && conn_text(answer, 0, 0)[0] != '\0';
    if (more)
      ok = shared_remove_lines(pg, conn_text(answer, 0, 0), err);
    conn_free(answer);
    if (!ok)
      return false;
  }
  return pg != NULL;
}

json_t *shared_unused_blobs(const char *url, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(url, err);
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg,
                      "SELECT encode(sha256, 'hex') FROM segue.blob "
                      "WHERE put_at < clock_timestamp() - interval '1 day'",
                      NULL, 0, false, &failure, err);
  json_t *named = answer != NULL ? json_object() : NULL;
  for (int i = 0; named != NULL && i < conn_rows(answer); i++)
    json_object_set_new(named, conn_text(answer, i, 0), json_true());
  conn_free(answer);
  return named;
}

/* --- state --- */

static const char status_sql[] =
    "SELECT json_build_object("
    "'version', (SELECT version FROM segue.meta),"
    "'server', current_setting('server_version'),"
    "'sessions', (SELECT coalesce(json_object_agg(state, n), '{}'::json) FROM"
    "  (SELECT state, count(*) AS n FROM segue.session WHERE seq > 0 GROUP BY state) c),"
    "'workers', (SELECT coalesce(json_agg(json_build_object("
    "   'id', w.id, 'name', w.name, 'labels', w.labels, 'program', w.program,"
    "   'lease_s', round(extract(epoch FROM w.lease_until - clock_timestamp())::numeric, 1),"
    "   'holds', (SELECT count(*) FROM segue.session s WHERE s.state = 'held' AND s.owner = w.id))"
    "   ORDER BY w.begun), '[]'::json) FROM segue.worker w),"
    "'providers', (SELECT coalesce(json_agg(json_build_object("
    "   'name', p.name, 'limit', p.seats, 'taken', (SELECT count(*) FROM segue.seat t"
    "     WHERE t.provider = p.name AND segue.has_lease(t.worker)),"
    "   'cools_s', greatest(0, round(extract(epoch FROM p.cool_until - clock_timestamp())::numeric,"
    "     1))) ORDER BY p.name), '[]'::json) FROM segue.provider p"
    "   WHERE p.seats IS NOT NULL OR p.cool_until > clock_timestamp()),"
    "'records', (SELECT coalesce(sum(seq), 0) FROM segue.session),"
    "'bytes', json_build_object("
    "   'logs', pg_total_relation_size('segue.line'),"
    "   'sessions', pg_total_relation_size('segue.session'),"
    "   'blobs', pg_total_relation_size('segue.blob_part')))";

json_t *shared_status(const char *url, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(url, err);
  PGresult *answer = pg ? base_ask(pg, status_sql, NULL, 0, false, &failure, err) : NULL;
  if (answer == NULL)
    return NULL;
  json_t *status = json_loads(conn_text(answer, 0, 0), 0, NULL);
  conn_free(answer);
  if (status == NULL)
    (void)err_set(err, ERR_CORRUPT, "the store %s reports its status in an unknown form",
                  pg->shown);
  else
    json_object_set_new(status, "store", json_string(pg->shown));
  return status;
}

/* --- places at providers --- */

bool shared_limit(const char *url, const char *provider, unsigned seats, struct err *err) {
  char number[16];
  enum conn_failure failure;
  struct pg_base *pg = base_of(url, err);
  (void)snprintf(number, sizeof number, "%u", seats);
  const struct conn_arg args[] = {arg_text(provider), arg_text(seats > 0 ? number : NULL)};
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg, "SELECT segue.seat_limit($1, $2)", args, 2, false, &failure, err);
  conn_free(answer);
  return answer != NULL;
}

/* --- who holds what --- */

static const char places_sql[] =
    "WITH live AS (SELECT * FROM segue.worker WHERE lease_until > clock_timestamp())"
    "SELECT coalesce(json_object_agg(s.id, CASE WHEN s.state = 'held' AND w.id IS NOT NULL THEN"
    "  json_build_object('worker', w.name, 'lease_age_s',"
    "   round(extract(epoch FROM clock_timestamp() - w.renewed)::numeric, 1))"
    " WHEN s.moved AND s.state = 'ended' THEN"
    "  json_build_object('waits', 'it was moved to ' || coalesce(s.moved_to, 'another store'),"
    "   'moved_to', coalesce(s.moved_to, 'another store'))"
    " ELSE json_build_object('waits', CASE"
    "  WHEN s.moved THEN 'it was being copied here: repeat that segue store import with the same "
    "options'"
    "  WHEN NOT EXISTS (SELECT FROM live) THEN 'there is no worker'"
    "  WHEN NOT EXISTS (SELECT FROM live l WHERE s.needs <@ l.labels) THEN coalesce("
    "   (SELECT 'no worker has label ' || string_agg(n, ', ') FROM unnest(s.needs) n"
    "     WHERE NOT EXISTS (SELECT FROM live l WHERE n = ANY (l.labels))),"
    "   'no worker has all of the labels ' || array_to_string(s.needs, ', '))"
    "  WHEN s.why IS NOT NULL THEN s.why"
    "  WHEN s.ready_at > clock_timestamp() THEN 'a worker gave it back; it is taken again in '"
    "   || ceil(extract(epoch FROM s.ready_at - clock_timestamp())) || ' s'"
    "  ELSE 'until a worker has a place' END) END), '{}'::json)"
    " FROM segue.session s LEFT JOIN live w ON w.id = s.owner"
    " WHERE s.seq > 0 AND (s.state = 'ready' OR (s.state = 'held' AND w.id IS NOT NULL)"
    " OR s.moved)";

json_t *shared_places(const char *url, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(url, err);
  PGresult *answer = pg ? base_ask(pg, places_sql, NULL, 0, false, &failure, err) : NULL;
  if (answer == NULL)
    return NULL;
  json_t *places = json_loads(conn_text(answer, 0, 0), 0, NULL);
  conn_free(answer);
  if (places == NULL)
    (void)err_set(err, ERR_CORRUPT, "the store %s reports its sessions in an unknown form",
                  pg->shown);
  return places;
}
