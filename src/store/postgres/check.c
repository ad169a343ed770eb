/* Compares the rows of a shared store with its logs. */
#include "store/shared.h"

#include "base/log.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "store/line.h"
#include "store/postgres/shared.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBLEM_BYTES = 256 };

/* Selects what a row says of its log. A session that was taken between two looks has another
 * fence. */
static const char row_sql[] =
    "SELECT id, seq, bytes, encode(hash, 'hex'), rest, state, state <> segue.rest_of($2, asked), "
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
  struct brief brief; /* tells where the session belongs */
  json_t *on;         /* labels that it asks for; NULL: its own machine, which it does not name */
  struct err why;     /* code ERR_NONE: all lines are sound */
};

static void end_deinit(struct log_end *end) {
  brief_deinit(&end->brief);
  json_decref(end->on);
}

static void end_read_line(struct log_end *end, struct str line) {
  if (end->seq > 0 && !shared_tells_rest(line))
    return;
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  if (record == NULL) /* its hash was right */
    return;
  if (end->seq == 0)
    end->on = json_incref(json_object_get(json_object_get(record, "config"), "on"));
  shared_feed(&end->brief, record);
}

static void end_begin(struct log_end *end) {
  *end = (struct log_end){0};
  memcpy(end->hash, line_first_hash, SHA256_HEX);
}

static void end_take(struct log_end *end, struct str line, bool whole) {
  char hash[SHA256_HEX];
  struct err why = {0};
  if (!whole || !line_check(line, end->hash, hash, &why)) {
    (void)err_set(&end->why, ERR_CORRUPT, "record %llu is damaged: %s",
                  (unsigned long long)end->seq + 1, whole ? why.text : "it has no end");
    return;
  }
  end_read_line(end, line);
  memcpy(end->hash, hash, SHA256_HEX);
  end->seq++;
  end->bytes += line.n + 1;
}

static bool read_end(const struct store_ref *ref, struct log_end *end, struct err *err) {
  struct log_reader r;
  struct str line;
  end_begin(end);
  if (!reader_open(&r, ref, err))
    return false;
  while (end->why.code == ERR_NONE && reader_next(&r, &line))
    end_take(end, line, r.whole);
  bool ok = r.error == 0 || err_set_errno(err, r.error, "cannot read %s", ref->name);
  reader_close(&r);
  return ok;
}

/* --- where records begin --- */

/* Gives for each record where its row says that it begins, and where it does. Records after a
 * missing one have no place and are left out. */
#define PLACES                                                                                     \
  "(SELECT seq, at, due FROM (SELECT seq, at, row_number() OVER w AS n, "                          \
  "sum(octet_length(line) + 1) OVER w - octet_length(line) - 1 AS due FROM segue.line "            \
  "WHERE session = $1::uuid WINDOW w AS (ORDER BY seq)) p WHERE seq = n AND at <> due)"

struct misplaced { /* the first record whose row is wrong */
  uint64_t seq;    /* 0: none */
  char at[24], due[24];
};

static bool find_misplaced(struct pg_base *pg, const char *id, struct misplaced *m,
                           struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg, "SELECT seq, at, due FROM " PLACES " p ORDER BY seq LIMIT 1",
                              args, ARRAY_LEN(args), false, &failure, err);
  *m = (struct misplaced){0};
  if (answer != NULL && conn_rows(answer) == 1) {
    m->seq = conn_number(answer, 0, 0);
    (void)snprintf(m->at, sizeof m->at, "%s", conn_text(answer, 0, 1));
    (void)snprintf(m->due, sizeof m->due, "%s", conn_text(answer, 0, 2));
  }
  conn_free(answer);
  return answer != NULL;
}

/* Reads the log record by record, since its bytes cannot be found by their place. */
static bool read_end_by_seq(struct pg_base *pg, const char *id, struct log_end *end,
                            struct err *err) {
  enum conn_failure failure;
  char number[24];
  const struct conn_arg args[] = {arg_text(id), arg_text(number)};
  end_begin(end);
  for (bool more = true; more && end->why.code == ERR_NONE;) {
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)end->seq + 1);
    PGresult *answer = base_ask(pg, "SELECT line FROM segue.line WHERE session = $1 AND seq = $2",
                                args, ARRAY_LEN(args), true, &failure, err);
    if (answer == NULL)
      return false;
    more = conn_rows(answer) == 1;
    if (more)
      end_take(end, conn_bytes(answer, 0, 0), true);
    conn_free(answer);
  }
  return true;
}

/* Corrects all places, as mend_row does for a row. */
static bool mend_places(struct pg_base *pg, const PGresult *row, bool *mended, struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(conn_text(row, 0, ROW_ID)),
                                  arg_text(conn_text(row, 0, ROW_FENCE))};
  PGresult *answer =
      base_ask(pg,
               "UPDATE segue.line l SET at = p.due FROM " PLACES " p "
               "WHERE l.session = $1::uuid AND l.seq = p.seq AND EXISTS (SELECT FROM "
               "segue.session s WHERE s.id = $1::uuid AND s.state <> 'held' AND "
               "s.fence = $2::bigint) RETURNING 1",
               args, ARRAY_LEN(args), false, &failure, err);
  *mended = answer != NULL && conn_rows(answer) > 0;
  conn_free(answer);
  return answer != NULL;
}

/* --- the row --- */

static PGresult *ask_row(struct pg_base *pg, const char *id, const char *rest, struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(id), arg_text(rest)};
  return base_ask(pg, row_sql, args, ARRAY_LEN(args), false, &failure, err);
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
  const char *rest = shared_rest_of(&end->brief);
  unsigned long long seq = conn_number(row, 0, ROW_SEQ), bytes = conn_number(row, 0, ROW_BYTES);
  bool moved = conn_text(row, 0, ROW_MOVED)[0] == 't'; /* ended here, whatever the log says */
  if (end->seq == 0)
    (void)snprintf(text, PROBLEM_BYTES, "its row says %llu records, its log is missing", seq);
  else if (end->seq != seq)
    (void)snprintf(text, PROBLEM_BYTES, "its row says %llu records, its log has %llu", seq,
                   (unsigned long long)end->seq);
  else if (end->bytes != bytes)
    (void)snprintf(text, PROBLEM_BYTES, "its row says %llu bytes, its log has %llu", bytes,
                   (unsigned long long)end->bytes);
  else if (strcmp(end->hash, conn_text(row, 0, ROW_HASH)) != 0)
    (void)snprintf(text, PROBLEM_BYTES, "its row has another hash than its log's last record");
  else if (!moved && strcmp(rest, conn_text(row, 0, ROW_REST)) != 0)
    (void)snprintf(text, PROBLEM_BYTES, "its row is filed as %s, its log says %s",
                   conn_text(row, 0, ROW_REST), rest);
  else if (!moved && conn_text(row, 0, ROW_STATE_WRONG)[0] == 't')
    (void)snprintf(text, PROBLEM_BYTES, "its row is %s, its log says %s",
                   conn_text(row, 0, ROW_STATE), rest);
  else if (!needs_agree(end, conn_text(row, 0, ROW_NEEDS)))
    (void)snprintf(text, PROBLEM_BYTES, "its row asks for a worker with %.80s, its log for %s",
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
  char seq[24], bytes[24];
  enum conn_failure failure;
  (void)snprintf(seq, sizeof seq, "%llu", (unsigned long long)end->seq);
  (void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)end->bytes);
  char *on = end->on != NULL ? json_dump_text(end->on, JSON_COMPACT) : NULL;
  const struct conn_arg args[] = {arg_text(conn_text(row, 0, ROW_ID)),
                                  arg_text(seq),
                                  arg_text(bytes),
                                  arg_text(end->hash),
                                  arg_text(shared_rest_of(&end->brief)),
                                  arg_text(on != NULL ? on : ""),
                                  arg_text(conn_text(row, 0, ROW_FENCE))};
  PGresult *answer = base_ask(
      pg,
      "UPDATE segue.session SET seq = $2::bigint, bytes = $3::bigint, hash = decode($4, 'hex'), "
      "rest = CASE WHEN moved THEN rest ELSE $5 END, "
      "state = CASE WHEN moved THEN state ELSE segue.rest_of($5, asked) END, "
      "needs = CASE WHEN $6 = '' THEN needs "
      "ELSE ARRAY(SELECT json_array_elements_text(nullif($6, '')::json)) END "
      "WHERE id = $1::uuid AND state <> 'held' AND fence = $7::bigint RETURNING 1",
      args, ARRAY_LEN(args), false, &failure, err);
  *mended = answer != NULL && conn_rows(answer) == 1;
  conn_free(answer);
  free(on);
  return answer != NULL;
}

/* --- one session --- */

/* Corrects the session's row and the rows of its records where they contradict the sound log. */
static bool check_mend(struct pg_base *pg, const PGresult *row, const struct log_end *end,
                       bool agrees, bool placed, bool *mended, struct err *err) {
  bool ok = agrees || mend_row(pg, row, end, mended, err);
  if (ok && !placed && (agrees || *mended))
    ok = mend_places(pg, row, mended, err);
  return ok;
}

static bool check_row(struct pg_base *pg, const PGresult *row, const struct log_end *end,
                      const struct misplaced *m, bool mend, struct shared_finding *found,
                      char text[PROBLEM_BYTES], struct err *err) {
  bool in_transit =
      conn_text(row, 0, ROW_MOVED)[0] == 't' && strcmp(conn_text(row, 0, ROW_STATE), "ended") != 0;
  if (end->why.code != ERR_NONE)
    (void)snprintf(text, PROBLEM_BYTES, "%.250s", end->why.text);
  bool agrees = end->why.code == ERR_NONE && row_agrees(row, end, text);
  bool placed = m->seq == 0;
  if (agrees && placed && !in_transit)
    return true;
  if (agrees && !placed)
    (void)snprintf(text, PROBLEM_BYTES,
                   "record %llu begins at byte %s of its log, its row says at %s",
                   (unsigned long long)m->seq, m->due, m->at);
  else if (agrees) /* only its source tells whether it may continue here */
    (void)snprintf(
        text, PROBLEM_BYTES,
        "it was being copied here: repeat that segue store import with the same options");
  found->problem = text;
  bool unknown = end->on == NULL && !needs_agree(end, conn_text(row, 0, ROW_NEEDS));
  if (!mend || (agrees && placed) || end->why.code != ERR_NONE || end->seq == 0)
    return true;
  bool ok = check_mend(pg, row, end, agrees, placed, &found->mended, err);
  found->mended = found->mended && !unknown;
  return ok;
}

static bool check_one(struct store *store, struct pg_base *pg, const char *id, bool mend,
                      struct shared_finding *found, char text[PROBLEM_BYTES], struct err *err) {
  struct store_ref ref;
  struct log_end end;
  struct misplaced m;
  shared_ref(store, id, &ref);
  *found = (struct shared_finding){.session = id};
  PGresult *before = ask_row(pg, id, "", err);
  if (before == NULL || conn_rows(before) == 0) { /* taken or removed since it was listed */
    bool none = before != NULL;
    conn_free(before);
    return none;
  }
  PGresult *row = NULL;
  end_begin(&end);
  if (!find_misplaced(pg, id, &m, err)) {
    conn_free(before);
    return false;
  }
  bool read = m.seq > 0 ? read_end_by_seq(pg, id, &end, err) : read_end(&ref, &end, err);
  bool gone = !read && err->code == ERR_NOT_FOUND;
  bool ok = read || gone;
  if (ok)
    row = ask_row(pg, id, shared_rest_of(&end.brief), err);
  ok = ok && row != NULL && (!gone || conn_rows(row) == 0);
  found->records = end.seq;
  bool still = ok && conn_rows(row) == 1 &&
               conn_number(row, 0, ROW_FENCE) == conn_number(before, 0, ROW_FENCE);
  if (still) /* otherwise somebody continued it while its log was read */
    ok = check_row(pg, row, &end, &m, mend, found, text, err);
  conn_free(before);
  conn_free(row);
  end_deinit(&end);
  return ok;
}

bool shared_check(const char *url, bool mend,
                  void (*each)(void *ctx, const struct shared_finding *finding), void *ctx,
                  struct err *err) {
  struct store store;
  enum conn_failure failure;
  char text[PROBLEM_BYTES];
  store_at(&store, url);
  struct pg_base *pg = base_of(url, err);
  PGresult *rows = NULL;
  if (pg != NULL)
    rows =
        base_ask(pg, "SELECT id FROM segue.session WHERE state <> 'held' AND seq > 0 ORDER BY id",
                 NULL, 0, false, &failure, err);
  bool ok = rows != NULL;
  for (int i = 0; ok && i < conn_rows(rows); i++) {
    struct shared_finding found;
    ok = check_one(&store, pg, conn_text(rows, i, 0), mend, &found, text, err);
    if (ok)
      each(ctx, &found);
  }
  conn_free(rows);
  return ok;
}
