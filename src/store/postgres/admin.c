/* Makes the tables of a shared store and reports its state. */
#include "store/shared.h"

#include "base/log.h"
#include "base/resource.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "store/postgres/session_log.h"
#include "store/record_line.h"

#include <stdlib.h>
#include <string.h>

/* Lets only one init run at a time in the whole database: two that both find no tables would both
 * make them, and one would fail. The server gives the lock back at the end of the transaction, also
 * when this program is killed. */
#define INIT_LOCK "SELECT pg_advisory_xact_lock(7303014)"

/* Finds a file of this folder, which is compiled in. */
static const char *sql_file(const char *name) {
  char path[64];
  print_into(path, sizeof path, "store/postgres/%s", name);
  const struct resource *r = resource_find(path);
  if (r == NULL)
    BUG("%s is not compiled in", path);
  return r->p;
}

/* Connects without checking the tables, which need not exist yet. */
static struct conn *admin_open(const char *url, char shown[URL_SHOWN_BYTES], struct err *err) {
  AUTO(url_deinit) struct url_options options;
  struct conn *conn = NULL;
  if (url_read(url, &options, shown, err))
    conn = conn_open(&options, shown, "segue store", NULL, err);
  return conn;
}

/* Returns -1 with err set, or 0 if there are no tables yet. */
static int tables_version(struct conn *conn, struct err *err) {
  int version = -1;
  PGresult *answer = conn_ask(conn, "SELECT to_regclass('segue.meta') IS NOT NULL",
                              LIMIT_STORE_ASK_MS, NULL, 0, false, NULL, err);
  if (answer == NULL)
    return -1;
  bool there = conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  if (!there)
    return 0;
  answer = conn_ask(conn, "SELECT version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL, 0, false,
                    NULL, err);
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

/* conn: NULL: the SQL is only printed. */
static bool init_do(struct conn *conn, const char *sql, struct buf *out, struct err *err) {
  if (conn != NULL)
    return conn_script(conn, sql, err);
  buf_puts(out, sql);
  return true;
}

/* schema.sql makes version 1 of the tables, each upgrade_N.sql brings them to version N. The
 * functions are made anew each time. */
static bool init_from(struct conn *conn, int version, struct buf *out, struct err *err) {
  char name[32] = "schema.sql";
  bool ok = true;
  while (ok && version < BASE_VERSION) {
    if (version > 0)
      print_into(name, sizeof name, "upgrade_%d.sql", version + 1);
    ok = init_do(conn, sql_file(name), out, err);
    version++;
  }
  return ok && init_do(conn, sql_file("functions.sql"), out, err) &&
         init_do(conn, sql_file("roles.sql"), out, err);
}

/* The version is read under the lock: of two inits, the second finds the tables of the first. */
static bool init_tables(struct conn *conn, const char *shown, struct buf *out, struct err *err) {
  if (!conn_script(conn, "BEGIN; " INIT_LOCK, err))
    return false;
  int version = tables_version(conn, err);
  bool ok = check_version(version, shown, err) && init_from(conn, version, out, err) &&
            conn_script(conn, "COMMIT", err);
  if (ok)
    tell_init(version, shown, out);
  else if (strstr(err->text, "create role") != NULL)
    err_set(err, ERR_INVALID,
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
    int version = tables_version(conn, err);
    ok = check_version(version, shown, err);
    if (ok) {
      buf_puts(out, "BEGIN;\n" INIT_LOCK ";\n");
      (void)!init_from(NULL, version, out, err);
      buf_puts(out, "COMMIT;\n");
    }
  } else {
    ok = init_tables(conn, shown, out, err);
  }
  conn_close(conn);
  return ok;
}

/* --- leftovers --- */

json_t *shared_unused_blobs(const char *url, struct err *err) {
  PGresult *answer = base_ask(base_of(url, err),
                              "SELECT encode(sha256, 'hex') FROM segue.blob "
                              "WHERE put_at < clock_timestamp() - interval '1 day'",
                              NULL, 0, err);
  json_t *named = answer != NULL ? json_object() : NULL;
  for (int i = 0; named != NULL && i < conn_rows(answer); i++)
    json_object_set_new(named, conn_text(answer, i, 0), json_true());
  conn_free(answer);
  return named;
}

/* --- state --- */

/* Asks for one JSON value. */
static json_t *ask_json(struct pg_base *pg, const char *file, const char *what, struct err *err) {
  PGresult *answer = base_ask(pg, sql_file(file), NULL, 0, err);
  if (answer == NULL)
    return NULL;
  json_t *json = json_loads(conn_text(answer, 0, 0), 0, NULL);
  conn_free(answer);
  if (json == NULL)
    err_set(err, ERR_CORRUPT, "the store %s reports its %s in an unknown form", pg->shown, what);
  return json;
}

json_t *shared_status(const char *url, struct err *err) {
  struct pg_base *pg = base_of(url, err);
  json_t *status = ask_json(pg, "status.sql", "status", err);
  if (status != NULL)
    json_object_set_new(status, "store", json_string(pg->shown));
  return status;
}

/* --- places at providers --- */

bool shared_limit(const char *url, const char *provider, unsigned slots, struct err *err) {
  char number[ARG_NUMBER_BYTES], word[BASE_WORD_BYTES];
  struct conn_arg args[] = {arg_text(provider), arg_number(number, slots)};
  if (slots == 0)
    args[1] = arg_text(NULL);
  return base_ask_word(base_of(url, err), "SELECT segue.seat_limit($1, $2)", args, ARRAY_LEN(args),
                       word, err);
}

/* --- who holds what --- */

json_t *shared_places(const char *url, struct err *err) {
  return ask_json(base_of(url, err), "places.sql", "sessions", err);
}

/* --- rows and logs --- */

enum { PROBLEM_BYTES = 256, END_PAGE = 64 };

/* Selects what a row says of its log. A session that was taken between two looks has another
 * fence. */
static const char row_sql[] =
    "SELECT id, seq, bytes, encode(hash, 'hex'), rest, state, state <> segue.rest_of($2, asked, "
    "after, "
    "seq), "
    "to_json(needs)::text, moved, fence FROM segue.session WHERE id = $1::uuid AND state <> 'held'";
enum {
  ROW_ID,
  ROW_SEQ,
  ROW_BYTES,
  ROW_HASH,
  ROW_REST,
  ROW_STATE,
  ROW_STATE_WRONG, /* wrong for the `rest` that was given */
  ROW_NEEDS,
  ROW_MOVED,
  ROW_FENCE
};

struct log_end { /* end of a log, according to its lines */
  uint64_t seq, bytes;
  char hash[SHA256_HEX];
  struct summary summary; /* tells where the session belongs */
  json_t *on;     /* labels that it asks for; NULL: its own machine, which it does not name */
  struct err why; /* code ERR_NONE: all lines are sound */
};

static void end_take(struct log_end *end, struct str line) {
  char hash[SHA256_HEX];
  struct err why = {0};
  if (!record_line_check(line, end->hash, hash, &why)) {
    err_set(&end->why, ERR_CORRUPT, "record %llu is damaged: %s", (unsigned long long)end->seq + 1,
            why.text);
    return;
  }
  if (end->seq == 0) {
    json_auto_t *start = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    end->on = json_incref(json_object_get(json_object_get(start, "config"), "on"));
  }
  shared_feed_line(&end->summary, line);
  memcpy(end->hash, hash, SHA256_HEX);
  end->seq++;
  end->bytes += line.n + 1;
}

/* Reads the log by the numbers of its records, since their places may be what is wrong. */
static bool read_end(struct pg_base *pg, const char *id, struct log_end *end, struct err *err) {
  *end = (struct log_end){0};
  memcpy(end->hash, record_line_first_hash, SHA256_HEX);
  for (int n = END_PAGE; n == END_PAGE && end->why.code == ERR_NONE;) {
    char number[ARG_NUMBER_BYTES];
    const struct conn_arg args[] = {arg_text(id), arg_number(number, end->seq)};
    PGresult *answer = base_ask_bytes(pg,
                                      "SELECT line FROM segue.line WHERE session = $1 AND seq > "
                                      "$2::bigint ORDER BY seq LIMIT 64",
                                      args, ARRAY_LEN(args), err);
    if (answer == NULL)
      return false;
    n = conn_rows(answer);
    for (int i = 0; i < n && end->why.code == ERR_NONE; i++)
      end_take(end, conn_bytes(answer, i, 0));
    conn_free(answer);
  }
  return true;
}

/* --- where records begin --- */

/* Gives for each record where its row says that it begins, and where it does. Records after a
 * missing one have no place and are left out. */
#define PLACES                                                                                     \
  "(SELECT seq, at, due FROM (SELECT seq, at, row_number() OVER w AS n, "                          \
  "sum(octet_length(line) + 1) OVER w - octet_length(line) - 1 AS due FROM segue.line "            \
  "WHERE session = $1::uuid WINDOW w AS (ORDER BY seq)) p WHERE seq = n AND at <> due)"

/* Corrects all places, as mend_row does for a row. */
static bool mend_places(struct pg_base *pg, const PGresult *row, bool *mended, struct err *err) {
  const struct conn_arg args[] = {arg_text(conn_text(row, 0, ROW_ID)),
                                  arg_text(conn_text(row, 0, ROW_FENCE))};
  PGresult *answer =
      base_ask(pg,
               "UPDATE segue.line l SET at = p.due FROM " PLACES " p "
               "WHERE l.session = $1::uuid AND l.seq = p.seq AND EXISTS (SELECT FROM "
               "segue.session s WHERE s.id = $1::uuid AND s.state <> 'held' AND "
               "s.fence = $2::bigint) RETURNING 1",
               args, ARRAY_LEN(args), err);
  *mended = answer != NULL && conn_rows(answer) > 0;
  conn_free(answer);
  return answer != NULL;
}

/* --- the row --- */

static PGresult *ask_row(struct pg_base *pg, const char *id, const char *rest, struct err *err) {
  const struct conn_arg args[] = {arg_text(id), arg_text(rest)};
  return base_ask(pg, row_sql, args, ARRAY_LEN(args), err);
}

/* Returns whether the row's labels are the log's. Without labels a session belongs where it was
 * submitted, which only the row says. */
static bool needs_agree(const struct log_end *end, const char *needs) {
  static const char host[] = "[\"host=";
  if (end->on == NULL)
    return strncmp(needs, host, sizeof host - 1) == 0;
  json_auto_t *labels = json_loads(needs, 0, NULL);
  return json_same(labels, end->on) == 1;
}

/* Returns whether the row agrees with the log; if not, says what is wrong. */
static bool row_agrees(const PGresult *row, const struct log_end *end, char text[PROBLEM_BYTES]) {
  const char *rest = shared_rest_of(&end->summary);
  unsigned long long seq = conn_number(row, 0, ROW_SEQ), bytes = conn_number(row, 0, ROW_BYTES);
  bool moved = conn_text(row, 0, ROW_MOVED)[0] == 't'; /* ended here, whatever the log says */
  if (end->seq == 0)
    print_into(text, PROBLEM_BYTES, "its row says %llu records, its log is missing", seq);
  else if (end->seq != seq)
    print_into(text, PROBLEM_BYTES, "its row says %llu records, its log has %llu", seq,
               (unsigned long long)end->seq);
  else if (end->bytes != bytes)
    print_into(text, PROBLEM_BYTES, "its row says %llu bytes, its log has %llu", bytes,
               (unsigned long long)end->bytes);
  else if (strcmp(end->hash, conn_text(row, 0, ROW_HASH)) != 0)
    print_into(text, PROBLEM_BYTES, "its row has another hash than its log's last record");
  else if (!moved && strcmp(rest, conn_text(row, 0, ROW_REST)) != 0)
    print_into(text, PROBLEM_BYTES, "its row is filed as %s, its log says %s",
               conn_text(row, 0, ROW_REST), rest);
  else if (!moved && conn_text(row, 0, ROW_STATE_WRONG)[0] == 't')
    print_into(text, PROBLEM_BYTES, "its row is %s, its log says %s", conn_text(row, 0, ROW_STATE),
               rest);
  else if (!needs_agree(end, conn_text(row, 0, ROW_NEEDS)))
    print_into(text, PROBLEM_BYTES, "its row asks for a worker with %.80s, its log for %s",
               conn_text(row, 0, ROW_NEEDS),
               end->on != NULL ? "others" : "the machine where it was submitted");
  else
    return true;
  return false;
}

/* Corrects a row directly, which only the owner of the tables may do, unless somebody has taken the
 * session. False: it cannot be done. */
static bool mend_row(struct pg_base *pg, const PGresult *row, const struct log_end *end,
                     bool *mended, struct err *err) {
  char seq[ARG_NUMBER_BYTES], bytes[ARG_NUMBER_BYTES];
  char_auto_t *on = end->on != NULL ? json_dump_text(end->on, JSON_COMPACT) : NULL;
  const struct conn_arg args[] = {
      arg_text(conn_text(row, 0, ROW_ID)),     arg_number(seq, end->seq),
      arg_number(bytes, end->bytes),           arg_text(end->hash),
      arg_text(shared_rest_of(&end->summary)), arg_text(on != NULL ? on : ""),
      arg_text(conn_text(row, 0, ROW_FENCE))};
  PGresult *answer = base_ask(
      pg,
      "UPDATE segue.session SET seq = $2::bigint, bytes = $3::bigint, hash = decode($4, 'hex'), "
      "rest = CASE WHEN moved THEN rest ELSE $5 END, "
      "state = CASE WHEN moved THEN state ELSE segue.rest_of($5, asked, after, $2::bigint) END, "
      "needs = CASE WHEN $6 = '' THEN needs "
      "ELSE ARRAY(SELECT json_array_elements_text(nullif($6, '')::json)) END "
      "WHERE id = $1::uuid AND state <> 'held' AND fence = $7::bigint RETURNING 1",
      args, ARRAY_LEN(args), err);
  *mended = answer != NULL && conn_rows(answer) == 1;
  conn_free(answer);
  return answer != NULL;
}

/* --- one session --- */

/* misplaced: the first record whose row has the wrong place, if there is one. */
static bool check_row(struct pg_base *pg, const PGresult *row, const struct log_end *end,
                      const PGresult *misplaced, bool mend, struct shared_finding *found,
                      char text[PROBLEM_BYTES], struct err *err) {
  bool in_transit =
      conn_text(row, 0, ROW_MOVED)[0] == 't' && strcmp(conn_text(row, 0, ROW_STATE), "ended") != 0;
  if (end->why.code != ERR_NONE)
    print_into(text, PROBLEM_BYTES, "%.250s", end->why.text);
  bool agrees = end->why.code == ERR_NONE && row_agrees(row, end, text);
  bool placed = conn_rows(misplaced) == 0;
  if (agrees && placed && !in_transit)
    return true;
  if (agrees && !placed)
    print_into(text, PROBLEM_BYTES, "record %s begins at byte %s of its log, its row says at %s",
               conn_text(misplaced, 0, 0), conn_text(misplaced, 0, 2), conn_text(misplaced, 0, 1));
  else if (agrees) /* only its source tells whether it may continue here */
    print_into(text, PROBLEM_BYTES,
               "it was being copied here: repeat that segue store import with the same options");
  found->problem = text;
  bool unknown = end->on == NULL && !needs_agree(end, conn_text(row, 0, ROW_NEEDS));
  if (!mend || (agrees && placed) || end->why.code != ERR_NONE || end->seq == 0)
    return true;
  bool ok = agrees || mend_row(pg, row, end, &found->mended, err);
  if (ok && !placed && (agrees || found->mended))
    ok = mend_places(pg, row, &found->mended, err);
  found->mended = found->mended && !unknown;
  return ok;
}

/* Nothing is locked while a log is read, which may take long. The row is read before and after it:
 * with another fence, somebody has continued the session meanwhile, and the log and the row need
 * not agree. A session that was taken or removed has no row here any more. */
static bool check_one(struct pg_base *pg, const char *id, bool mend, struct shared_finding *found,
                      char text[PROBLEM_BYTES], struct err *err) {
  const struct conn_arg args[] = {arg_text(id)};
  struct log_end end = {0};
  *found = (struct shared_finding){.session = id};
  PGresult *row = NULL, *misplaced = NULL, *before = ask_row(pg, id, "", err);
  if (before != NULL)
    misplaced = base_ask(pg, "SELECT seq, at, due FROM " PLACES " p ORDER BY seq LIMIT 1", args,
                         ARRAY_LEN(args), err);
  bool ok = misplaced != NULL && read_end(pg, id, &end, err);
  if (ok)
    row = ask_row(pg, id, shared_rest_of(&end.summary), err);
  ok = row != NULL;
  found->records = end.seq;
  if (ok && conn_rows(before) == 1 && conn_rows(row) == 1 &&
      conn_number(row, 0, ROW_FENCE) == conn_number(before, 0, ROW_FENCE))
    ok = check_row(pg, row, &end, misplaced, mend, found, text, err);
  conn_free(before);
  conn_free(misplaced);
  conn_free(row);
  summary_deinit(&end.summary);
  json_decref(end.on);
  return ok;
}

bool shared_check(const char *url, bool mend,
                  void (*each)(void *ctx, const struct shared_finding *finding), void *ctx,
                  struct err *err) {
  char text[PROBLEM_BYTES];
  struct pg_base *pg = base_of(url, err);
  PGresult *rows =
      base_ask(pg, "SELECT id FROM segue.session WHERE state <> 'held' AND seq > 0 ORDER BY id",
               NULL, 0, err);
  bool ok = rows != NULL;
  for (int i = 0; ok && i < conn_rows(rows); i++) {
    struct shared_finding found;
    ok = check_one(pg, conn_text(rows, i, 0), mend, &found, text, err);
    if (ok)
      each(ctx, &found);
  }
  conn_free(rows);
  return ok;
}
