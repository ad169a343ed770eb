/* Reads the answer to a question from its session's log. */
#include "daemon/question.h"

#include "audit/ask_told.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/loop.h"
#include "store/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* This gathers what the session's log says. */
struct question_told {
  json_t *judgment, *stop; /* the last of each, or NULL */
  struct ask_told ask;
};

static bool question_is(const json_t *record, const char *type) {
  const char *found = json_string_value(json_object_get(record, "type"));
  return found != NULL && strcmp(found, type) == 0;
}

static void question_keep(json_t **slot, json_t *record) {
  json_decref(*slot);
  *slot = json_incref(record);
}

struct answering {
  uv_work_t work;
  struct readings *rs;
  struct server_request *request; /* NULL: its client has left */
  struct store_ref ref;
  char id[STORE_ID_BYTES];
  char status[sizeof((struct brief *)NULL)->status];
  bool judges, ok;
  struct question_told told;
  struct err err;
};

static bool read_told(const struct store_ref *ref, struct question_told *told, struct err *err) {
  struct log_reader r;
  struct str line;
  if (!reader_open(&r, ref, err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record != NULL)
      ask_told_feed(&told->ask, record);
    if (question_is(record, "judgment"))
      question_keep(&told->judgment, record);
    else if (question_is(record, "session_stop") || question_is(record, "session_end"))
      question_keep(&told->stop, record);
    json_decref(record);
  }
  reader_close(&r);
  return true;
}

/* Nothing was answered: whoever was asked is away, or the session was stopped. */
static void question_stop(const struct answering *a) {
  const json_t *stop = a->told.stop;
  const char *message = json_string_value(json_object_get(stop, "message"));
  const char *reason = json_string_value(json_object_get(stop, "reason"));
  json_t *members = json_pack("{ss ss*}", "session", a->id, "reason", reason);
  server_problem(a->request, 502, members, "%s: %s", reason ? reason : a->status,
                 message ? message : "there is no answer");
}

static void answering_reply(const struct answering *a) {
  const struct question_told *told = &a->told;
  if (!a->ok) {
    server_problem(a->request, 500, NULL, "%s", a->err.text);
  } else if (a->judges && told->judgment != NULL) {
    server_reply_json(a->request, 200,
                      json_pack("{ss sO}", "session", a->id, "judgment", told->judgment));
  } else if (!a->judges && told->ask.structured != NULL) {
    json_t *result = ask_told_result(&told->ask, NULL);
    json_object_set_new(result, "session", json_string(a->id));
    server_reply_json(a->request, 200, result);
  } else {
    question_stop(a);
  }
}

static void answering_work(uv_work_t *work) {
  struct answering *a = work->data;
  a->ok = read_told(&a->ref, &a->told, &a->err);
}

static void answering_over(uv_work_t *work, int status) {
  struct answering *a = work->data;
  assert(status == 0);
  if (a->request != NULL)
    answering_reply(a);
  json_decref(a->told.judgment);
  json_decref(a->told.stop);
  ask_told_deinit(&a->told.ask);
  readings_end_more(a->rs);
  free(a);
}

static void answering_on_gone(void *ctx) {
  struct answering *a = ctx;
  a->request = NULL;
}

void question_take(struct readings *rs, struct server_request *r, const struct daemon_entry *e,
                   bool judges) {
  struct answering *a = xcalloc(1, sizeof *a);
  a->rs = rs;
  a->request = r;
  a->judges = judges;
  entry_ref(e, &a->ref);
  memcpy(a->id, e->id, sizeof a->id);
  memcpy(a->status, e->brief.status, sizeof a->status);
  a->work.data = a;
  readings_begin_more(rs);
  server_keep(r, answering_on_gone, a);
  loop_work(rs->loop, &a->work, answering_work, answering_over);
}
