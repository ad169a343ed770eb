/* Reads one session for a program. */
#include "daemon/lookup.h"

#include "audit/book.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "view/proof.h"
#include "view/session.h"
#include "view/told.h"

#include <stdio.h>
#include <stdlib.h>

struct looking {
  struct store_ref ref;
  enum lookup what;
  char turn[24];
};

static json_t *look_view(const struct looking *l, struct err *err) {
  struct view_session v;
  if (!view_session_read(&v, &l->ref, err))
    return NULL;
  json_t *view = view_session_json(&v);
  view_session_deinit(&v);
  return view;
}

static json_t *look_turn(const struct looking *l, struct err *err) {
  struct book book;
  struct view_told told;
  json_t *record, *view = NULL;
  long turn;
  if (!str_to_long(str_from(l->turn), &turn) || turn < 1) {
    (void)err_set(err, ERR_NOT_FOUND, "a turn has a number: \"%s\" is none", l->turn);
    return NULL;
  }
  if (!book_open(&book, &l->ref, true, err))
    return NULL;
  while ((record = book_next(&book)) != NULL)
    json_decref(record);
  if (view_told_read(&told, &book, turn, LIMIT_LOOKUP_TEXT_BYTES, LIMIT_LOOKUP_TEXT_BYTES, err)) {
    view = view_told_json(&told);
    view_told_deinit(&told);
  }
  book_close(&book);
  return view;
}

static json_t *look_integrity(const struct looking *l, struct err *err) {
  struct verify_result r;
  struct proof *proof = proof_new(err);
  bool ok = proof != NULL && proof_read(proof, &l->ref, &r, err);
  proof_free(proof);
  if (!ok)
    return NULL;
  bool sound = r.state == VERIFY_COMPLETE || r.state == VERIFY_OPEN || r.state == VERIFY_EMPTY;
  json_t *out = json_pack("{ss sb ss sI sb}", "session", r.session, "ok", sound, "state",
                          verify_state_name(r.state), "records", (json_int_t)r.records, "sealed",
                          r.seal != VERIFY_UNSEALED);
  if (r.state == VERIFY_TORN)
    json_put(out, "torn_bytes", json_integer((json_int_t)r.torn_bytes));
  if (r.state == VERIFY_BAD) {
    json_put(out, "bad_record", json_integer((json_int_t)r.bad_record));
    json_put(out, "error", json_text(str_from(r.why.text)));
  }
  return out;
}

static void lookup_work(void *what, struct reading_answer *answer) {
  const struct looking *l = what;
  json_t *value = NULL;
  switch (l->what) {
  case LOOKUP_VIEW:
    value = look_view(l, &answer->err);
    break;
  case LOOKUP_TURN:
    value = look_turn(l, &answer->err);
    break;
  case LOOKUP_INTEGRITY:
    value = look_integrity(l, &answer->err);
    break;
  }
  if (value == NULL) {
    answer->status = answer->err.code == ERR_NOT_FOUND ? 404 : 500;
    return;
  }
  json_write(value, &answer->body);
  json_decref(value);
}

void lookup_take(struct readings *rs, struct server_request *r, const struct store_ref *ref,
                 enum lookup what, const char *turn) {
  struct looking *l = xcalloc(1, sizeof *l);
  l->ref = *ref;
  l->what = what;
  (void)snprintf(l->turn, sizeof l->turn, "%s", turn);
  reading_take(rs, r, lookup_work, free, l);
}
