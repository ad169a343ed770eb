/* Reads one session for a program. */
#include "daemon/session_api.h"

#include "audit/compare.h"
#include "base/limits.h"
#include "base/log.h"
#include "daemon/entry.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "view/judgment.h"
#include "view/raw.h"
#include "view/search.h"
#include "view/verification.h"

#include <stdlib.h>
#include <string.h>

enum { FIND_BYTES = 401, REF_BYTES = 256 };

const char *const session_api_page_query[] = {"after", "limit", NULL};
const char *const session_api_text_query[] = {"ref", "offset", "limit", NULL};
const char *const session_api_find_query[] = {"text", NULL};

struct looking {
  struct store_ref ref, other; /* other: the second of the two being compared */
  const struct store *store;   /* of the two, whose words `text` and `place` are then */
  struct record_index *track;  /* borrowed while it is read; NULL: the log itself */
  enum session_api what;
  long number, after, limit;
  char text[FIND_BYTES];
  char place[REF_BYTES];
};

static json_t *look_turns(const struct looking *l) {
  const struct view_session *v = &l->track->view;
  json_auto_t *all = view_session_json(v);
  json_t *turns = json_object_get(all, "turns"), *list = json_array(), *turn;
  long last = 0;
  size_t i;
  bool more = false;
  json_array_foreach(turns, i, turn) {
    long number = (long)json_integer_value(json_at(turn, "turn"));
    if (number <= l->after)
      continue;
    more = (long)json_array_size(list) == l->limit;
    if (more)
      break;
    json_array_append(list, turn);
    last = number;
  }
  return json_pack("{so so}", "turns", list, "next", more ? json_integer(last) : json_null());
}

static json_t *look_integrity(const struct looking *l, struct err *err) {
  struct verify_result r;
  struct verification *verification = verification_new(err);
  bool ok = verification != NULL && verification_read(verification, &l->ref, &r, err);
  verification_free(verification);
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

static json_t *session_api_value(const struct looking *l, struct err *err) {
  if (l->track != NULL && !record_index_read(l->track, err))
    return NULL;
  switch (l->what) {
  case SESSION_API_VIEW:
    return view_session_json(&l->track->view);
  case SESSION_API_TURNS:
    return look_turns(l);
  case SESSION_API_TURN: {
    struct view_judgment told;
    if (!view_judgment_read(&told, &l->track->book, l->number, LIMIT_LOOKUP_TEXT_BYTES,
                            LIMIT_LOOKUP_TEXT_BYTES, err))
      return NULL;
    json_t *view = view_judgment_json(&told);
    view_judgment_deinit(&told);
    return view;
  }
  case SESSION_API_CALL:
    return view_call_json(&l->track->book, l->number, LIMIT_LOOKUP_PAGE_BYTES, err);
  case SESSION_API_TEXT:
    return view_text_json(&l->track->book, l->place, (size_t)l->after, (size_t)l->limit, err);
  case SESSION_API_RECORDS:
    return view_raws_json(&l->track->book, (uint64_t)l->after, (size_t)l->limit,
                          LIMIT_LOOKUP_PAGE_BYTES, err);
  case SESSION_API_FIND: {
    struct view_search found;
    if (!view_search_read(&found, &l->track->book, str_from(l->text), LIMIT_WINDOW_FOUND_COUNT,
                          err))
      return NULL;
    json_t *out = view_search_json(&found);
    view_search_deinit(&found);
    return out;
  }
  case SESSION_API_INTEGRITY:
    break;
  }
  return look_integrity(l, err);
}

static void session_api_answer(struct read_job_answer *answer, json_t *value) {
  if (value == NULL) {
    answer->status = 500;
    if (answer->err.code == ERR_NOT_FOUND)
      answer->status = 404;
    else if (answer->err.code == ERR_USAGE)
      answer->status = 400;
    return;
  }
  json_write(value, &answer->body);
  json_decref(value);
}

static void session_api_work(void *what, struct read_job_answer *answer) {
  session_api_answer(answer, session_api_value(what, &answer->err));
}

static bool compare_find(const struct looking *l, const char *word, struct store_ref *ref,
                         struct err *err) {
  char id[STORE_ID_BYTES];
  if (!status_snapshot_find(l->store, word, id, err))
    return err_set(err, ERR_NOT_FOUND, "there is no session %.80s", word);
  store_ref(l->store, id, ref);
  return true;
}

static void compare_work(void *what, struct read_job_answer *answer) {
  struct looking *l = what;
  struct compare_side a = {0}, b = {0};
  json_t *told = NULL;
  size_t count;
  struct err *err = &answer->err;
  if (compare_find(l, l->text, &l->ref, err) && compare_find(l, l->place, &l->other, err) &&
      compare_log(&a, &l->ref, err) && compare_sound(&a, err) && compare_log(&b, &l->other, err) &&
      compare_sound(&b, err)) {
    struct compare_row *rows = compare_align(&a, &b, &count);
    told = compare_json(&a, &b, rows, count);
    free(rows);
  }
  compare_side_deinit(&a);
  compare_side_deinit(&b);
  session_api_answer(answer, told);
}

/* --- requests --- */

/* str_to_long takes eighteen digits. */
static const long LOOK_MOST = 999999999999999999;

/* Returns false if it has answered the request. */
static bool session_api_number(struct server_request *r, const char *name, long least, long most,
                               long *number) {
  const char *given = server_query(r, name);
  if (given == NULL)
    return true;
  if (str_to_long(str_from(given), number) && *number >= least && *number <= most)
    return true;
  server_problem(r, 400, NULL, "%s must be a number from %ld to %ld", name, least, most);
  return false;
}

static bool look_numbered(struct server_request *r, struct looking *l, const char *what) {
  const char *word = server_part2(r);
  if (str_to_long(str_from(word), &l->number) && l->number > 0)
    return true;
  server_problem(r, 404, NULL, "\"%s\" is not the number of a %s", word, what);
  return false;
}

static bool look_word(struct server_request *r, const char *name, char *out, size_t size) {
  const char *given = server_query(r, name);
  if (given != NULL && given[0] != '\0' && strlen(given) < size) {
    memcpy(out, given, strlen(given) + 1);
    return true;
  }
  server_problem(r, 400, NULL, "give %s, of up to %zu bytes", name, size - 1);
  return false;
}

static bool look_asked(struct server_request *r, struct looking *l) {
  switch (l->what) {
  case SESSION_API_TURN:
    return look_numbered(r, l, "turn");
  case SESSION_API_CALL:
    return look_numbered(r, l, "call");
  case SESSION_API_TURNS:
  case SESSION_API_RECORDS:
    l->limit = 100;
    return session_api_number(r, "after", 0, LOOK_MOST, &l->after) &&
           session_api_number(r, "limit", 1, LIMIT_API_PAGE_COUNT, &l->limit);
  case SESSION_API_TEXT:
    l->limit = 64L * 1024;
    return look_word(r, "ref", l->place, sizeof l->place) &&
           session_api_number(r, "offset", 0, LOOK_MOST, &l->after) &&
           session_api_number(r, "limit", 1, LIMIT_LOOKUP_TEXT_BYTES, &l->limit);
  case SESSION_API_FIND:
    return look_word(r, "text", l->text, sizeof l->text);
  case SESSION_API_VIEW:
  case SESSION_API_INTEGRITY:
    break;
  }
  return true;
}

void session_api_take(struct read_jobs *rs, struct server_request *r, struct view_cache *view_cache,
                      const struct store_ref *ref, enum session_api what) {
  struct looking *l = xcalloc(1, sizeof *l);
  l->ref = *ref;
  l->what = what;
  if (!look_asked(r, l)) {
    free(l);
    return;
  }
  struct view_cache_item *item =
      what != SESSION_API_INTEGRITY ? view_cache_find(view_cache, ref) : NULL;
  l->track = item != NULL ? item->track : NULL;
  read_job_take_of(rs, r, item, session_api_work, free, l);
}

void session_api_compare(struct read_jobs *rs, struct server_request *r, const struct store *store,
                         const char *a, const char *b) {
  struct looking *l = xcalloc(1, sizeof *l);
  l->store = store;
  print_into(l->text, sizeof l->text, "%s", a);
  print_into(l->place, sizeof l->place, "%s", b);
  read_job_take(rs, r, compare_work, free, l);
}
