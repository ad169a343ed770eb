/* Reads logs for audits: proves each line, and passes on what its records add up to. */
#include "audit/rows.h"

#include "audit/rows_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/record.h"
#include "store/line.h"
#include "store/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *rows_log_name(enum rows_log state) {
  static const char *const names[ROWS_LOG_COUNT] = {
      [ROWS_SOUND] = "sound",          [ROWS_TORN] = "torn",       [ROWS_EMPTY] = "empty",
      [ROWS_TAMPERED] = "tampered",    [ROWS_FOREIGN] = "foreign", [ROWS_NEWER] = "newer",
      [ROWS_UNREADABLE] = "unreadable"};
  assert(state < ROWS_LOG_COUNT);
  return names[state];
}

/* --- results --- */

static void give_row(struct rows *rows, struct row *row) {
  row->workflow = rows->session.workflow;
  row->outcome = rows->session.outcome;
  row->stages = rows->stages + row->stage_first;
  if (rows->sink.judged != NULL)
    rows->sink.judged(rows->ctx, row);
}

void rows_emit(struct rows *rows, struct row *row) {
  if (rows->proven) {
    give_row(rows, row);
    rows->stage_count = 0;
    return;
  }
  bool full = rows->count == LIMIT_AUDIT_ROW_COUNT || rows->stage_count > 4 * LIMIT_AUDIT_ROW_COUNT;
  if (rows->spills || full) {
    rows->spills = true;
    rows->stage_count = row->stage_first;
    return;
  }
  if (rows->count == rows->room) {
    rows->room = rows->room ? rows->room * 2 : 16;
    rows->list = xrealloc(rows->list, rows->room * sizeof *rows->list);
  }
  rows->list[rows->count++] = *row;
}

/* --- reading --- */

static void rows_begin(struct rows *rows) {
  rows->count = rows->stage_count = rows->call_count = rows->turn_count = rows->schema_count = 0;
  rows->records = rows->end = 0;
  rows->unruled_count = 0;
  memcpy(rows->hash, line_first_hash, SHA256_HEX);
}

static enum rows_log rows_refuse(struct rows *rows, enum rows_log state, const char *why) {
  (void)err_set(&rows->err, ERR_CORRUPT, "record %llu: %s", (unsigned long long)rows->records + 1,
                why);
  return state;
}

/* Takes a whole line. ROWS_LOG_COUNT: it is sound, go on. */
static enum rows_log rows_line(struct rows *rows, struct str line) {
  char next[SHA256_HEX];
  struct rows_head head;
  struct err err;
  bool readable = rows_head(line, &head), first = rows->records == 0;
  bool begins = readable && str_eq_c(head.type, "session_start") && head.v > 0;
  if (first && !begins)
    return rows_refuse(rows, ROWS_FOREIGN, "it does not begin a session");
  if (readable && head.v > RECORD_VERSION)
    return rows_refuse(rows, ROWS_NEWER, "its version is newer");
  if (!rows->proven && !line_check(line, rows->hash, next, &err))
    return rows_refuse(rows, ROWS_TAMPERED, err.text);
  if (!rows->proven && (memchr(line.p, '\0', line.n) != NULL || !utf8_valid(line.p, line.n)))
    return rows_refuse(rows, ROWS_TAMPERED, "it is not text");
  if (!readable || head.v != RECORD_VERSION || head.seq != (int64_t)rows->records + 1)
    return rows_refuse(rows, ROWS_TAMPERED, "it is not the next record");
  switch (rows_take(rows, &head)) {
  case ROWS_TAKEN:
    break;
  case ROWS_BAD:
    return rows_refuse(rows, ROWS_TAMPERED, "it cannot be read");
  case ROWS_BEYOND:
    return rows_refuse(rows, ROWS_UNREADABLE, "it has more calls or stages than are counted");
  }
  if (!rows->proven)
    memcpy(rows->hash, next, SHA256_HEX);
  rows->records++;
  rows->end += line.n + 1;
  return ROWS_LOG_COUNT;
}

/* Ends a log that has no further whole line. */
static enum rows_log rows_at_end(struct rows *rows, const struct log_reader *r, bool piece) {
  if (r->error != 0) {
    (void)err_set_errno(&rows->err, r->error, "it cannot be read");
    return ROWS_UNREADABLE;
  }
  if (r->too_long)
    return rows_refuse(rows, ROWS_UNREADABLE, "its line is longer than audit reads");
  if (piece && !reader_is_owned(r)) /* its owner may be writing */
    return rows->records > 0 ? ROWS_TORN : ROWS_EMPTY;
  return rows->records > 0 ? ROWS_SOUND : ROWS_EMPTY;
}

static enum rows_log rows_pass(struct rows *rows, const struct store_ref *ref, uint64_t until) {
  struct log_reader r;
  struct str line;
  enum rows_log state = ROWS_LOG_COUNT;
  rows_begin(rows);
  if (!reader_open(&r, ref, &rows->err))
    return ROWS_UNREADABLE;
  r.max = LIMIT_AUDIT_LINE_BYTES;
  while (state == ROWS_LOG_COUNT && rows->end < until) {
    bool more = reader_next(&r, &line);
    rows->bytes += more ? line.n + r.whole : 0;
    if (more && r.whole)
      state = rows_line(rows, line);
    else
      state = rows_at_end(rows, &r, more);
  }
  if (!rows->proven && rows->session.outcome == NAMES_NONE)
    rows->session.outcome =
        names_add(rows->names, reader_is_owned(&r) ? STR("running") : STR("open"));
  reader_close(&r);
  return state;
}

enum rows_log rows_read(struct rows *rows, const struct store_ref *ref) {
  assert(rows != NULL);
  assert(rows->names != NULL);
  rows->session = (struct row_session){0};
  rows->spills = rows->proven = false;
  enum rows_log state = rows_pass(rows, ref, UINT64_MAX);
  if (state != ROWS_SOUND && state != ROWS_TORN)
    return state;
  if (store_ref_is_copy(ref, rows->session.id, &rows->err))
    return ROWS_FOREIGN; /* the session is counted under its own name */
  if (rows->spills) {
    const struct row_session session = rows->session;
    rows->proven = true;
    (void)rows_pass(rows, ref, rows->end);
    rows->session = session;
    rows->proven = false;
  } else {
    for (size_t i = 0; i < rows->count; i++)
      give_row(rows, &rows->list[i]);
  }
  if (rows->sink.ended != NULL)
    rows->sink.ended(rows->ctx, &rows->session);
  return state;
}

void rows_deinit(struct rows *rows) {
  buf_deinit(&rows->scratch);
  free(rows->list);
  free(rows->stages);
  free(rows->calls);
  free(rows->turns);
  *rows = (struct rows){0};
}
